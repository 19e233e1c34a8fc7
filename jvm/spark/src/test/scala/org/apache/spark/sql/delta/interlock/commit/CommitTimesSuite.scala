package org.apache.spark.sql.delta.interlock.commit

import org.apache.spark.sql.delta.interlock.commit.TimedPhase._

class CommitTimesSuite extends munit.FunSuite {
  test("what runs in another phase counts for that one alone") {
    var time = 0L
    val times = new CommitTimes(() => time)
    times.in(Judge) {
      time += 1
      times.in(Winners)(time += 10)
      intercept[IllegalStateException](times.in(Winners) {
        time += 100
        throw new IllegalStateException
      })
      time += 1000
    }
    times.in(Judge)(time += 10000)
    assertEquals(
      times.all.toMap,
      Map(
        "turn" -> 0L,
        "winners" -> 110L,
        "judge" -> 11001L,
        "checksum" -> 0L,
        "store" -> 0L,
        "snapshot" -> 0L
      )
    )
  }
}
