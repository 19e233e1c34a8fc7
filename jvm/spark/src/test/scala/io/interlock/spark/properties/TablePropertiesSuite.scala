package io.interlock.spark.properties

import io.interlock.rules.Policies
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.TableProperties.Table

class TablePropertiesSuite extends munit.FunSuite {
  private val RowLevel = Policies.byName("row_level").get
  private val Named = Map("interlock.policy" -> "row_level")
  private val Digest = Map(PolicyDigest.of(RowLevel))
  private val Required = Map(
    "delta.enableRowTracking" -> "true",
    "delta.enableInCommitTimestamps" -> "true",
    "delta.feature.deletionVectors" -> "supported"
  )
  private val Preset = Map("delta.enableDeletionVectors" -> "true")
  private val All = Named ++ Digest ++ Required ++ Preset
  private val Other = Map("user.key" -> "value")

  private def none(key: String): Option[String] = None

  private def table(
      properties: Map[String, String],
      exists: Boolean = true,
      replaced: Boolean = false,
      supports: Set[String] = Set.empty
  ) = Table("db.t", properties, exists, replaced, supports)

  private val New = table(Map.empty, exists = false)

  private def created(proposed: Map[String, String], conf: (String, String)*) =
    TableProperties.complete(New, proposed, conf.toMap.get)

  private def refused(condition: String, parts: String*)(change: => Any): Unit = {
    val error = intercept[InterlockException] { change; () }
    assertEquals(error.getCondition, condition)
    parts.foreach(part => assert(error.getMessage.contains(part), error.getMessage))
  }

  test("a new table has what its policy requires") {
    assertEquals(created(Named ++ Other), All ++ Other)
    assertEquals(created(Other), Other)
  }

  test("what the user sets is kept, unless it is contrary to the policy") {
    val off = Map("delta.enableDeletionVectors" -> "false")
    assertEquals(created(Named ++ off), All ++ off)
    val upper = Map("delta.enableRowTracking" -> "TRUE")
    assertEquals(created(Named ++ upper), All ++ upper)
    for (key <- Required.keys)
      refused("INTERLOCK_REQUIRED_PROPERTY", key)(created(Named + (key -> "false")))
  }

  test("only policies by rows switch deletion vectors on, and only those that map rows need them") {
    assertEquals(
      created(Map("interlock.policy" -> "maxcompute_transactional")).keySet,
      (Named ++ Digest ++ Required).keySet - "delta.feature.deletionVectors"
    )
    assertEquals(
      created(Map("interlock.policy" -> "maxcompute_delta")).keySet,
      (Named ++ Digest ++ Required).keySet
    )
  }

  test("a new table gets the session's defaults, an existing one does not") {
    val policy = TableProperties.DefaultPolicyConf -> "row_level"
    val exclusive = Exclusive.Conf -> "true"
    assertEquals(created(Other, policy), All ++ Other)
    assertEquals(created(Other, policy, exclusive), All ++ Other + (Exclusive.Key -> "true"))
    assertEquals(created(Other, exclusive), Other)
    val conf = Map(policy, exclusive)
    assertEquals(TableProperties.complete(table(Map.empty), Other, conf.get), Other)
    assertEquals(
      created(Map("interlock.policy" -> "serializable"), policy)("interlock.policy"),
      "serializable"
    )
  }

  test("an existing table keeps its policy and what that requires") {
    assertEquals(TableProperties.complete(table(All), Required, none), All -- Preset.keys)
    refused("INTERLOCK_REQUIRED_PROPERTY", "delta.enableRowTracking")(
      TableProperties.complete(table(All), Map("delta.enableRowTracking" -> "false"), none)
    )
  }

  test("a table that has rows gets row ids by an ALTER TABLE only") {
    refused("INTERLOCK_POLICY_NEEDS_ALTER", "row_level")(
      TableProperties.complete(table(Other), Named, none)
    )
    val replaced = table(Other, replaced = true)
    assertEquals(TableProperties.complete(replaced, Named, none), All)
  }

  test("a table that supports deletion vectors needs no property for them") {
    val supports = table(All, supports = Set("deletionVectors"))
    assertEquals(
      TableProperties.complete(supports, Required - "delta.feature.deletionVectors", none),
      All -- Preset.keys - "delta.feature.deletionVectors"
    )
  }

  test("an ALTER TABLE that sets a policy sets what it lacks") {
    assertEquals(TableProperties.requiredByAlter(Other, Named), All -- Named.keys)
    assertEquals(TableProperties.requiredByAlter(All, Named), Digest)
    assertEquals(TableProperties.requiredByAlter(All, Other), Map.empty[String, String])
    refused("INTERLOCK_REQUIRED_PROPERTY", "delta.enableRowTracking")(
      TableProperties.requiredByAlter(Map("delta.enableRowTracking" -> "false"), Named)
    )
  }

  test("what a policy requires is neither unset nor dropped") {
    for (key <- Required.keys ++ Digest.keys)
      refused("INTERLOCK_REQUIRED_PROPERTY", key)(TableProperties.unset(All, Seq(key)))
    for (feature <- Seq("rowTracking", "INCOMMITTIMESTAMP", "deletionVectors"))
      refused("INTERLOCK_REQUIRED_PROPERTY", "dropped")(
        TableProperties.refuseDrop(RowLevel, Seq("other", feature))
      )
    TableProperties.refuseDrop(RowLevel, Seq("other"))
  }

  test("an UNSET of the policy ends what Interlock has set") {
    val exclusive = All ++ Other + (Exclusive.Key -> "true")
    assertEquals(
      TableProperties.unset(exclusive, Seq("interlock.policy")),
      Required ++ Preset ++ Other
    )
    assertEquals(
      TableProperties.unset(exclusive, Seq("interlock.policy", "user.key")),
      Required ++ Preset
    )
    assertEquals(TableProperties.unset(exclusive, Seq("user.key")), exclusive - "user.key")
  }

  test("an UNSET of a misspelt property is refused, unless the table has it") {
    for (key <- Seq("Interlock.Exclusive", "interlock.policies"))
      refused("INTERLOCK_UNKNOWN_PROPERTY", key)(TableProperties.unset(All, Seq("user.key", key)))
    val legacy = All + ("interlock.old" -> "1")
    assertEquals(TableProperties.unset(legacy, Seq("interlock.old", Exclusive.Key)), All)
  }

  test("a RESTORE leaves Interlock's own properties as they are") {
    val earlier = Map("interlock.policy" -> "serializable", "user.key" -> "earlier")
    assertEquals(
      TableProperties.restored(All ++ Other, earlier),
      Named ++ Digest + ("user.key" -> "earlier")
    )
  }

  test("unknown names and values are refused, and the nearest is named") {
    refused("INTERLOCK_UNKNOWN_PROPERTY", "interlock.policy")(
      created(Map("interlock.polcy" -> "row_level"))
    )
    refused("INTERLOCK_UNKNOWN_PROPERTY")(created(Map("INTERLOCK.POLICY" -> "row_level")))
    refused("INTERLOCK_UNKNOWN_POLICY", "row_level")(
      created(Map("interlock.policy" -> "row_levle"))
    )
    refused("INTERLOCK_INVALID_PROPERTY", "true or false")(
      created(Named + (Exclusive.Key -> "yes"))
    )
  }

  test("only a table with a policy is exclusive") {
    val exclusive = Map(Exclusive.Key -> "true")
    refused("INTERLOCK_INVALID_PROPERTY", "set 'interlock.policy' as well")(created(exclusive))
    // Another writer has set it.
    assertEquals(TableProperties.complete(table(exclusive), exclusive, none), exclusive)
  }

  test("properties that name a policy without what it requires are refused") {
    TableProperties.refuseIncomplete(All)
    TableProperties.refuseIncomplete(All - "delta.feature.deletionVectors")
    TableProperties.refuseIncomplete(Other)
    refused("INTERLOCK_REQUIRED_PROPERTY", "delta.enableRowTracking", "unset")(
      TableProperties.refuseIncomplete(All - "delta.enableRowTracking")
    )
  }

  test("a table with a policy has the file system's coordinator unless it names another") {
    assertEquals(TablePolicy.coordinatorOf(Other), None)
    assertEquals(TablePolicy.coordinatorOf(Named), Some("filesystem"))
    assertEquals(
      TablePolicy.coordinatorOf(Named + ("interlock.coordinator" -> "postgres")),
      Some("postgres")
    )
  }
}
