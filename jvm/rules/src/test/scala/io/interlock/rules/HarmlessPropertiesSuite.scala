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
}
