package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException

class OtherCoordinatorSuite extends munit.FunSuite {
  private val Ours = Map("interlock.policy" -> "row_level")
  private val Catalog = Some("its catalog (table feature catalogManaged)")
  private val preview =
    Map("delta.coordinatedCommits.commitCoordinator-preview" -> "dynamodb")

  test("a table's feature, a statement's property and a property of the preview tell") {
    assertEquals(OtherCoordinator.of(Ours, Set("rowTracking")), None)
    assertEquals(OtherCoordinator.of(Ours, Set("catalogManaged")), Catalog)
    for (key <- Seq("delta.feature.catalogManaged", "DELTA.feature.catalogmanaged"))
      assertEquals(OtherCoordinator.of(Map(key -> "supported"), Set.empty), Catalog)
    assert(OtherCoordinator.of(preview, Set.empty).exists(_.contains("'dynamodb'")))
  }

  test("only tables of ours are refused") {
    OtherCoordinator.refuse("db.t", preview, Set("catalogManaged"))
    OtherCoordinator.refuse("db.t", Ours, Set("rowTracking"))
    for (own <- Seq(Ours, Map("interlock.coordinator" -> "filesystem"))) {
      val refused =
        intercept[InterlockException](OtherCoordinator.refuse("db.t", own ++ preview, Set.empty))
      assertEquals(refused.getCondition, "INTERLOCK_OTHER_COORDINATOR")
      assert(refused.getMessage.contains("db.t"))
    }
  }

  test("an ALTER TABLE that would bind such a table is refused, and none that leaves it bound") {
    val managed = Map("delta.feature.catalogManaged" -> "supported")
    intercept[InterlockException](TableProperties.besideAlter("db.t", managed, Ours))
    val others = Map("user.key" -> "1")
    assertEquals(TableProperties.besideAlter("db.t", managed, others).toSeq, Nil)
    TableProperties.besideAlter("db.t", managed ++ Ours, Ours): Unit
  }
}
