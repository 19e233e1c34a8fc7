package org.apache.spark.sql.delta.interlock.log

import scala.concurrent.duration._

/** Commits of a table with an interval of 10, whose first commit in this process is version 101. */
class CheckpointLagSuite extends munit.FunSuite {
  private val First = 100L

  final private class Busy {
    private var time = 0.nanos
    private val lag = new CheckpointLag(() => time.toNanos)
    var checkpoint: Option[Long] = Some(50)
    var reads = 0

    def waits(known: Long, taken: Long = -1, after: FiniteDuration = 20.millis): Boolean = {
      time += after
      lag.isTooLong(known, 10, _ <= taken) {
        reads += 1
        checkpoint
      }
    }

    assert(!waits(First))
  }

  test("a commit waits if it would be more than two intervals ahead of the last checkpoint") {
    val table = new Busy
    table.checkpoint = Some(110)
    assert(!table.waits(126))
    assert(table.waits(127))
    table.checkpoint = Some(120)
    assert(!table.waits(127))
  }

  test("an interval of one or two versions leaves no room for others") {
    for (interval <- Seq(1L, 2L)) {
      val lag = new CheckpointLag(() => 0)
      def waits(known: Long) = lag.isTooLong(known, interval, _ => false)(None)
      assert(!waits(First))
      assert(!waits(First + interval - 1))
      assert(waits(First + interval))
    }
  }

  test("commits on their way count") {
    val table = new Busy
    table.checkpoint = Some(110)
    assert(!table.waits(120, taken = 126))
    assert(table.waits(120, taken = 127))
  }

  test("versions before the first commit do not count, nor is the file read while it is near") {
    val table = new Busy
    assert(!table.waits(116))
    assertEquals(table.reads, 0)
    assert(table.waits(117))
    assertEquals(table.reads, 1)
  }

  test("a file that cannot be read, or that names an earlier version, changes nothing") {
    val table = new Busy
    table.checkpoint = Some(110)
    assert(!table.waits(117))
    for (odd <- Seq(None, Some(100L))) {
      table.checkpoint = odd
      assert(!table.waits(126))
      assert(table.waits(127))
    }
  }

  test("behind two seconds in vain nobody waits for a minute") {
    val table = new Busy
    assert(table.waits(117))
    assert(table.waits(117, after = 1999.millis))
    assert(!table.waits(117, after = 1.milli))
    assert(!table.waits(500, after = 59999.millis))
    assert(table.waits(500, after = 1.milli))
  }

  test("they wait again behind a checkpoint that came late") {
    val table = new Busy
    assert(table.waits(117))
    assert(!table.waits(117, after = 2.seconds))
    assert(!table.waits(140))
    table.checkpoint = Some(120)
    assert(!table.waits(141))
    table.checkpoint = Some(140)
    assert(!table.waits(142))
    assert(!table.waits(156))
    assert(table.waits(157))
  }

  test("a wait that ends well leaves two seconds for the next") {
    val table = new Busy
    assert(table.waits(117))
    table.checkpoint = Some(110)
    assert(!table.waits(117, after = 1999.millis))
    assert(table.waits(127))
    assert(table.waits(127, after = 1999.millis))
  }
}
