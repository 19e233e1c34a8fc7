package io.interlock.rules

class HarmlessPropertiesSuite extends munit.FunSuite {
  import HarmlessProperties._

  test("users' own properties are harmless, of others those that the resource lists") {
    val harmless = Seq("owner", "delta.logRetentionDuration", "delta.autoOptimize.autoCompact")
    assertEquals(harmless.filterNot(contain), Nil)
    val others = Seq(
      "delta.appendOnly",
      "delta.enableChangeDataFeed",
      "delta.logRetentionDurations",
      "delta.constraints.positive",
      "interlock.policy",
      "option.x",
      "#"
    )
    assertEquals(others.filter(contain), Seq("#"))
  }

  private val base = Map("a" -> "1", "b" -> "2", "delta.appendOnly" -> "false")

  test("two changes of different keys both stand") {
    val one = base + ("c" -> "3") - "a"
    val other = base + ("b" -> "4") + ("d" -> "5")
    val both = Map("b" -> "4", "c" -> "3", "d" -> "5", "delta.appendOnly" -> "false")
    assertEquals(merged(base, one, other), Some(both))
    assertEquals(merged(base, other, one), Some(both))
  }

  test("a key that both change must get the same value, or be removed by both") {
    assertEquals(merged(base, base + ("a" -> "3"), base + ("a" -> "3")), Some(base + ("a" -> "3")))
    assertEquals(merged(base, base - "a", base - "a"), Some(base - "a"))
    assertEquals(merged(base, base + ("a" -> "3"), base + ("a" -> "4")), None)
    assertEquals(merged(base, base + ("a" -> "3"), base - "a"), None)
  }

  test("a change that is not harmless stands beside no other, in either order") {
    val strict = base + ("delta.appendOnly" -> "true")
    assertEquals(merged(base, strict, base), None)
    assertEquals(merged(base, base + ("c" -> "3"), strict), None)
  }
}
