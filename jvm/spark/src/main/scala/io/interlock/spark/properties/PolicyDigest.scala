package io.interlock.spark.properties

import io.interlock.rules.{Policies, Policy}
import io.interlock.spark.errors.InterlockException

/** The property with the [[Policy.digest]] of a table's policy. It identifies the rules that the
  * policy's name stood for when the table got the policy, so that no two sessions judge by
  * different rules under one name. Interlock sets and removes it together with the policy; tables
  * with one of Interlock's own policies may be without it.
  */
object PolicyDigest {
  val Key = "interlock.policy.digest"

  def of(policy: Policy): (String, String) = Key -> policy.digest

  /** The policy that a table's writers must keep.
    *
    * @throws InterlockException
    *   INTERLOCK_POLICY_MISMATCH if this session does not have the policy or has other rules under
    *   its name
    */
  def enforced(table: String, properties: Map[String, String]): Option[Policy] =
    TablePolicy.named(properties).map { name =>
      val digest = properties.get(Key)
      SessionPolicies.byName(name) match {
        case Some(policy) if digest.fold(Policies.names.contains(name))(_ == policy.digest) =>
          policy
        case None if digest.isEmpty => throw SessionPolicies.unknown(name)
        case found =>
          throw InterlockException(
            "INTERLOCK_POLICY_MISMATCH",
            "table" -> table,
            "policy" -> name,
            "expected" -> digest.fold("no digest")("the digest " + _),
            "found" -> found.fold("no policy of that name")("one with the digest " + _.digest),
            "key" -> SessionPolicies.confKey(name)
          )
      }
    }

  /** Refuses a digest that a statement sets and that does not belong to its policy. */
  def check(table: Map[String, String], set: Map[String, String]): Unit =
    set.get(Key).foreach(refuseOther(_, TablePolicy.policyOf(table ++ set)))

  /** Refuses a change of a table's properties in a session whose rules differ from the table's. A
    * change is permitted if the statement also changes the policy or its digest; the analyzer adds
    * the digest to an ALTER TABLE that sets the policy.
    */
  def checkChange(
      table: String,
      before: Map[String, String],
      proposed: Map[String, String]
  ): Unit = {
    val isKept = TablePolicy.named(proposed).forall(TablePolicy.named(before).contains)
    proposed.get(Key).filterNot(before.get(Key).contains) match {
      case Some(given) => refuseOther(given, TablePolicy.policyOf(before ++ proposed))
      case None if isKept =>
        enforced(table, before)
        ()
      case None => ()
    }
  }

  private def refuseOther(digest: String, policy: Option[Policy]): Unit =
    if (!policy.map(_.digest).contains(digest))
      throw InterlockException.invalidProperty(
        Key,
        digest,
        policy.fold("no value where there is no policy")(its =>
          s"only ${its.digest} for the policy ${its.name}, and Interlock sets it"
        )
      )
}
