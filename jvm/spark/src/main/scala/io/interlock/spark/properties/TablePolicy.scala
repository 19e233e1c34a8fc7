package io.interlock.spark.properties

import io.interlock.rules.Policy

/** The policy and the coordinator that a table's properties name. */
object TablePolicy {
  val PolicyKey = "interlock.policy"

  /** The name of the policy. */
  def named(properties: Map[String, String]): Option[String] = properties.get(PolicyKey)

  /** The policy that this session has under the name of the table's policy.
    *
    * @throws InterlockException
    *   INTERLOCK_UNKNOWN_POLICY, INTERLOCK_MALFORMED_POLICY
    */
  def policyOf(properties: Map[String, String]): Option[Policy] =
    named(properties).map(name =>
      SessionPolicies.byName(name).getOrElse(throw SessionPolicies.unknown(name))
    )

  /** The coordinator of a table's commits: the file system's if the table has a policy and names no
    * coordinator; none if Delta commits by itself.
    */
  def coordinatorOf(properties: Map[String, String]): Option[String] =
    properties
      .get(CoordinatorSettings.Key)
      .orElse(named(properties).map(_ => CoordinatorSettings.FileSystem))
}
