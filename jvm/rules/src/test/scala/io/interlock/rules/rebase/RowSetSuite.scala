package io.interlock.rules.rebase

import scala.collection.mutable
import scala.util.Random

class RowSetSuite extends munit.FunSuite {
  private val huge = 3L << 30 // more than 2^31

  private def runs(set: RowSet): Seq[(Long, Long)] = {
    val runs = mutable.Buffer.empty[(Long, Long)]
    set.foreachRange((from, until) => { val _ = runs += (from -> until) })
    runs.toSeq
  }

  test("runs are joined, whatever the order in which rows come") {
    assertEquals(runs(RowSet.of(7, 3, 4, 5, 9, 8)), Seq(3L -> 6L, 7L -> 10L))
    assertEquals(runs(RowSet.empty), Nil)
    assertEquals(RowSet.range(5, 5), RowSet.empty)
    assertEquals(runs(RowSet.range(10, 200000)), Seq(10L -> 200000L))
  }

  test("a run of more than 2^31 rows is one run") {
    val set = RowSet.range(5, huge).union(RowSet.of(huge + 1, huge << 10))
    assertEquals(
      runs(set),
      Seq(5L -> huge, huge + 1 -> (huge + 2), (huge << 10) -> ((huge << 10) + 1))
    )
    assertEquals(set.size, huge - 5 + 2)
    assertEquals(set.minus(RowSet.range(0, huge)), RowSet.of(huge + 1, huge << 10))
  }

  test("runs go on from one bitmap of 2^32 rows to the next") {
    val word = 1L << 32
    val set = RowSet.of(word, word * 2 - 1, 3, word - 1).union(RowSet.range(word * 2, word * 3 + 2))
    assertEquals(
      runs(set),
      Seq(3L -> 4L, word - 1 -> (word + 1), word * 2 - 1 -> (word * 3 + 2))
    )
    assertEquals(
      Seq(0L, 4L, word, word + 1, word * 3).map(set.before),
      Seq(0L, 1L, 2L, 3L, word + 4)
    )
    assertEquals(set.minus(RowSet.range(word, word * 4)), RowSet.of(3, word - 1))
  }

  test("equality is that of sets, not of how they were built") {
    val ranges = RowSet.range(0, 5000)
    val rows = RowSet.of(0L until 5000L: _*)
    assertEquals(ranges, rows)
    assertEquals(ranges.hashCode, rows.hashCode)
    assertNotEquals(ranges, RowSet.range(1, 5001))
    assertNotEquals(ranges, RowSet.range(0, 4999))
    assertEquals(RowSet.of(1, 2, 5).toString, "RowSet( 1 until 3 5 until 6 )")
  }

  test("union, minus, contains and runs agree with plain sets") {
    val random = new Random(1)
    (1 to 200).foreach { _ =>
      def some = {
        val base = Seq(0L, 65530L, (1L << 32) - 20)(random.nextInt(3))
        Seq.fill(random.nextInt(40))(base + random.nextInt(60)).toSet
      }
      val (a, b) = (some ++ some, some ++ some)
      val (x, y) = (RowSet.of(a.toSeq: _*), RowSet.of(b.toSeq: _*))
      assertEquals(x.union(y), RowSet.of(a.union(b).toSeq: _*))
      assertEquals(x.minus(y), RowSet.of(a.diff(b).toSeq: _*))
      assertEquals(x.size, a.size.toLong)
      assertEquals(x.isEmpty, a.isEmpty)
      assert((a ++ b).forall(row => x.before(row) == a.count(_ < row)))
      assert((a ++ b).forall(row => x.contains(row) == a(row)))
      assertEquals(runs(x).flatMap { case (from, until) => from until until }, a.toSeq.sorted)
      assert(runs(x).sliding(2).forall(pair => pair.size < 2 || pair(0)._2 < pair(1)._1))
    }
  }
}
