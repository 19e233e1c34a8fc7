package io.interlock.spark.properties

import java.util.Locale

import io.interlock.rules.Policy
import io.interlock.spark.errors.InterlockException

/** The `interlock.*` table properties, and the Delta properties which a policy requires.
  *
  * Pure functions on property maps; the catalog calls them early, each transaction calls them for
  * every change of a table's metadata.
  */
object TableProperties {
  val DefaultPolicyConf = "spark.interlock.defaultPolicy"

  /** All properties that a table can have. */
  val Known: Seq[String] =
    Seq(
      TablePolicy.PolicyKey,
      PolicyDigest.Key,
      CoordinatorSettings.Key,
      Exclusive.Key
    ) ++ Setting.ofTables.map(_.property)

  private val RowTracking = "delta.enableRowTracking"
  private val InCommitTimestamps = "delta.enableInCommitTimestamps"
  private val DeletionVectors = "delta.feature.deletionVectors"
  private val WritesDeletionVectors = "delta.enableDeletionVectors"

  /** Delta's properties, with a part of their value, that a table with deletion vectors cannot have.
    */
  private val WithoutVectors = Seq(
    "delta.compatibility.symlinkFormatManifest.enabled" -> "true",
    "delta.enableIcebergCompatV1" -> "true",
    "delta.enableIcebergCompatV2" -> "true",
    "delta.universalFormat.enabledFormats" -> "hudi"
  )

  /** The table feature behind each property that a policy may require. */
  private val FeatureOf = Map(
    RowTracking -> "rowTracking",
    InCommitTimestamps -> "inCommitTimestamp",
    DeletionVectors -> "deletionVectors"
  )

  /** Properties that Delta derives from a required property and loses in a REPLACE. */
  private val Derived = Seq(
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp"
  )

  /** A table before a change of its metadata.
    *
    * @param replaced
    *   whether the statement replaces the table's definition
    */
  final case class Table(
      name: String,
      properties: Map[String, String],
      exists: Boolean,
      replaced: Boolean,
      supports: Set[String]
  )

  /** Refuses unknown `interlock.*` properties and unknown policies, naming the nearest right one,
    * and values that a property cannot have.
    */
  def check(properties: Map[String, String]): Unit = {
    refuseUnknown(properties.keys)
    Setting.ofTables.foreach(_.check(properties))
    Exclusive.check(properties)
    properties.get(CoordinatorSettings.Key).foreach(CoordinatorSettings.checkName)
    TablePolicy.policyOf(properties)
    ()
  }

  private def refuseUnknown(keys: Iterable[String]): Unit =
    keys
      .find(key => isOurs(key) && !Known.contains(key))
      .foreach(key => throw InterlockException.unknownProperty(key, Known))

  /** The properties that a policy requires: row tracking and in-commit timestamps, and support for
    * deletion vectors if its rebases map rows. Whether DML writes deletion vectors is left to the
    * user.
    */
  def requiredBy(policy: Policy): Seq[(String, String)] =
    Seq(RowTracking -> "true", InCommitTimestamps -> "true") ++
      Option.when(policy.remapsRows)(DeletionVectors -> "supported")

  /** The property that a policy sets unless the user has set it: deletion vectors for DML, without
    * which a policy by rows could not tell apart the rows of one file.
    *
    * @param before
    *   the properties that the table had before, possibly with the policy
    */
  private def presetBy(policy: Policy, before: Map[String, String]): Option[(String, String)] =
    Option.when(policy.judgesByRows && !TablePolicy.named(before).contains(policy.name))(
      WritesDeletionVectors -> "true"
    )

  /** The properties that a table gets from those that a statement sets.
    *
    * Interlock's properties and those that they require are kept from the table's current ones,
    * unless the statement sets them.
    */
  def complete(
      table: Table,
      proposed: Map[String, String],
      conf: String => Option[String]
  ): Map[String, String] = {
    val inherited = table.properties.filter { case (key, _) => isOurs(key) }
    val named = if (table.exists) inherited ++ proposed else withDefaults(proposed, conf)
    if (table.exists) PolicyDigest.checkChange(table.name, table.properties, proposed)
    check(named)
    TablePolicy.policyOf(named).fold {
      Exclusive.refuseWithoutPolicy(table.properties, named)
      named - PolicyDigest.Key
    } { policy =>
      val completed = withRequired(table, named + PolicyDigest.of(policy), policy)
      refuseBesideVectors(policy, table.properties, completed)
      completed
    }
  }

  /** The properties for which no file of the table may have a deletion vector. */
  def excludesVectors(properties: Map[String, String]): Seq[(String, String)] = for {
    (key, part) <- WithoutVectors
    value <- properties.get(key) if value.toLowerCase(Locale.ROOT).contains(part)
  } yield key -> value

  /** Refuses what Delta permits without deletion vectors only, if the policy has turned them on. */
  private def refuseBesideVectors(
      policy: Policy,
      before: Map[String, String],
      after: Map[String, String]
  ): Unit =
    for {
      (key, value) <- excludesVectors(after)
      if policy.judgesByRows && after.get(WritesDeletionVectors).exists(_.equalsIgnoreCase("true"))
      if TablePolicy.named(before) != TablePolicy.named(after) || !before.get(key).contains(value)
      others = SessionPolicies.readable.filterNot(_.judgesByRows).map(_.name)
    } throw InterlockException(
      "INTERLOCK_NO_DELETION_VECTORS",
      "policy" -> policy.name,
      "property" -> key,
      "value" -> value,
      "others" -> others.mkString(", ")
    )

  private def withDefaults(
      proposed: Map[String, String],
      conf: String => Option[String]
  ): Map[String, String] = {
    val named = conf(DefaultPolicyConf).map(TablePolicy.PolicyKey -> _).toMap ++ proposed
    if (named.contains(TablePolicy.PolicyKey)) Exclusive.default(conf).toMap ++ named else named
  }

  private def withRequired(
      table: Table,
      properties: Map[String, String],
      policy: Policy
  ): Map[String, String] = {
    val hasPolicy = TablePolicy.named(table.properties).nonEmpty
    val derived = table.properties.filter { case (key, _) => Derived.contains(key) }
    val preset = presetBy(policy, table.properties)
    requiredBy(policy).foldLeft(derived ++ preset ++ properties) { case (all, (key, value)) =>
      all.get(key) match {
        case Some(set) if set.equalsIgnoreCase(value) => all
        case Some(set) => throw InterlockException.requiredProperty(policy.name, key, value, set)
        case None if isSupported(table, key) => all
        case None if key == RowTracking && table.exists && !table.replaced && !hasPolicy =>
          throw InterlockException("INTERLOCK_POLICY_NEEDS_ALTER", "policy" -> policy.name)
        case None => all + (key -> value)
      }
    }
  }

  private def isSupported(table: Table, key: String): Boolean =
    key == DeletionVectors && table.exists && table.supports(FeatureOf(key))

  /** The properties that an ALTER TABLE must set in addition to its own.
    *
    * @param table
    *   the properties that the table has, with its features as Delta shows them
    * @throws InterlockException
    *   if the table cannot have what the statement sets
    */
  def besideAlter(
      name: String,
      table: Map[String, String],
      set: Map[String, String]
  ): Map[String, String] = {
    check(set)
    PolicyDigest.check(table, set)
    if (TablePolicy.coordinatorOf(table).isEmpty)
      OtherCoordinator.refuse(name, table ++ set, Set.empty)
    requiredByAlter(table, set)
  }

  /** The properties that an ALTER TABLE that sets a policy must also set: the policy's digest and
    * required properties.
    */
  def requiredByAlter(table: Map[String, String], set: Map[String, String]): Map[String, String] =
    TablePolicy.policyOf(set).fold(Map.empty[String, String]) { policy =>
      val preset = presetBy(policy, table).filterNot { case (key, _) =>
        (table ++ set).contains(key)
      }
      (requiredBy(policy).filter { case (key, value) =>
        set.get(key).orElse(table.get(key)) match {
          case None => true
          case Some(is) if is.equalsIgnoreCase(value) => false
          case Some(is) => throw InterlockException.requiredProperty(policy.name, key, value, is)
        }
      } ++ preset :+ PolicyDigest.of(policy)).toMap
    }

  /** Refuses to drop table features which the policy requires.
    *
    * @param features
    *   their names, as DROP FEATURE names them
    */
  def refuseDrop(policy: Policy, features: Seq[String]): Unit =
    for {
      name <- features
      (key, value) <- requiredBy(policy) if FeatureOf(key).equalsIgnoreCase(name)
    } throw InterlockException.requiredProperty(policy.name, key, value, "dropped")

  /** Refuses properties that name a policy without the ones it requires. */
  def refuseIncomplete(properties: Map[String, String]): Unit =
    for {
      policy <- TablePolicy.policyOf(properties)
      (key, value) <- requiredBy(policy) if key != DeletionVectors
      found = properties.getOrElse(key, "unset") if !found.equalsIgnoreCase(value)
    } throw InterlockException.requiredProperty(policy.name, key, value, found)

  /** The properties after a RESTORE, which leaves Interlock's own as they are. */
  def restored(
      current: Map[String, String],
      restored: Map[String, String]
  ): Map[String, String] =
    restored.filterNot { case (key, _) => isOurs(key) } ++
      current.filter { case (key, _) => isOurs(key) }

  /** The properties after an UNSET of `keys`, the only statement that removes a policy. Unknown ones
    * that the table has, from whomever, may go.
    */
  def unset(properties: Map[String, String], keys: Seq[String]): Map[String, String] = {
    refuseUnknown(keys.filterNot(properties.contains))
    val ends =
      if (keys.contains(TablePolicy.PolicyKey)) Seq(PolicyDigest.Key, Exclusive.Key) else Nil
    val left = properties -- keys.filter(isOurs) -- ends
    TablePolicy.policyOf(left).foreach { policy =>
      val kept = requiredBy(policy) :+ PolicyDigest.of(policy)
      kept.filter { case (key, _) => keys.contains(key) }.foreach {
        case (key, value) =>
          throw InterlockException.requiredProperty(policy.name, key, value, "unset")
      }
    }
    left -- keys
  }

  def isOurs(key: String): Boolean = key.toLowerCase(Locale.ROOT).startsWith("interlock.")
}
