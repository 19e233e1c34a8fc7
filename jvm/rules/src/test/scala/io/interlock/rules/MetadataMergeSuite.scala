package io.interlock.rules

import io.interlock.rules.MetadataPart._

class MetadataMergeSuite extends munit.FunSuite {
  private val (a, b, c) = (Property("a"), Property("b"), Property("c"))
  private val appendOnly = Property("delta.appendOnly")
  private val (id, w) = (Column(Seq("id")), Column(Seq("s", "w")))
  private val base = Map[MetadataPart, Any](a -> 1, b -> 2, appendOnly -> false, id -> "INT")
  private val strict = base + (appendOnly -> true)

  private def merged(
      winner: Map[MetadataPart, Any],
      attempt: Map[MetadataPart, Any],
      writesData: Boolean = false,
      addsNulls: Boolean = true
  ) = new MetadataMerge(base, winner, attempt)(_ => addsNulls).merged(writesData)

  test("changes of different things both stand") {
    val one = base + (c -> 3) + (TableComment -> "events") - a
    val other = base + (b -> 4) + (w -> "INT") + (ColumnComment(Seq("id")) -> "key")
    val both = one + (b -> 4) + (w -> "INT") + (ColumnComment(Seq("id")) -> "key")
    assertEquals(merged(one, other), Right(both))
    assertEquals(merged(other, one), Right(both))
    assertEquals(merged(one, other, writesData = true), Right(both))
  }

  test("two equal changes are one, whatever they change") {
    for (change <- Seq(base + (a -> 3), base - a, base + (w -> "INT"), strict, base - id))
      assertEquals(merged(change, change), Right(change))
  }

  test("one thing cannot become two") {
    assertEquals(
      merged(base + (a -> 3), base + (a -> 4)),
      Left("changed the property a to 3, and this job to 4")
    )
    assertEquals(
      merged(base - a, base + (a -> 4)),
      Left("changed the property a to nothing, and this job to 4")
    )
    assertEquals(
      merged(base + (w -> "INT"), base + (w -> "STRING")),
      Left("changed the column s.w to INT, and this job to STRING")
    )
  }

  test("what is not harmless follows only changes that matter to nobody") {
    assertEquals(merged(strict, base + (c -> 3)), Left("changed the property delta.appendOnly"))
    assertEquals(merged(base + (c -> 3), strict), Right(strict + (c -> 3)))
    assertEquals(
      merged(base + (w -> "INT"), strict),
      Left("changed the column s.w, and this job changes the property delta.appendOnly")
    )
    assertEquals(merged(base - id, base), Left("changed the column id"))
    assertEquals(merged(base + (id -> "LONG"), base), Left("changed the column id"))
    assertEquals(
      merged(base + (w -> "INT"), base, addsNulls = false),
      Left("changed the column s.w")
    )
  }

  test("a job that writes data has not seen a change that it makes as well") {
    assertEquals(
      merged(strict, strict, writesData = true),
      Left("changed the property delta.appendOnly")
    )
    val added = base + (w -> "INT")
    assertEquals(merged(added, added, writesData = true), Right(added))
  }
}
