package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.OperationClass.{CompactMajor, CompactMinor, MergeSmallFiles}
import io.interlock.rules.Policies
import io.interlock.spark.compaction.CompactionKind
import org.apache.spark.sql.delta.ProtocolChangedException
import org.apache.spark.sql.delta.interlock.DeltaSuite

/** Cells of the built-in policies on actions: who loses, and as what the others are committed.
  *
  * In what a commit becomes, `-A` removes a file, `+A` adds one, and digits are its dead rows.
  */
class InterlockConflictCheckerSuite extends DeltaSuite {
  private lazy val table = new CheckedTable(spark)

  private val Appended = Left("INTERLOCK_CONCURRENT_APPEND")
  private val Removed = Left("INTERLOCK_CONCURRENT_DELETE_READ")
  private val RemovedBoth = Left("INTERLOCK_CONCURRENT_DELETE_DELETE")
  private def becomes(actions: String) = Right(actions.split(' ').toSet)
  private val AsItIs = Right(Set.empty[String])

  private def minor(output: String) = table.compact(CompactionKind.Minor, CompactMinor, output)
  private def major(output: String) = table.compact(CompactionKind.Major, CompactMajor, output)
  private def merge(output: String) =
    table.compact(CompactionKind.MergeSmallFiles, MergeSmallFiles, output)

  private def check(
      policy: String,
      cell: String,
      earlier: => CheckedTable.Job,
      later: => CheckedTable.Job,
      expected: Either[String, Set[String]]
  ): Unit = test(s"$policy $cell") {
    val job = later
    val unless = if (expected == AsItIs) Right(table.untouched(job)) else expected
    assertEquals(table.judge(policy, earlier, job), unless)
  }

  private val delta = "maxcompute_delta"
  check(delta, "D1", table.overwrite("W"), table.overwrite("N"), becomes("-W +N"))
  check(delta, "D2", table.overwrite("W"), table.append("N"), Appended)
  check(delta, "D3", table.overwrite("W"), table.kill(1), Appended)
  check(delta, "D4", table.overwrite("W"), minor("N"), Removed)
  check(delta, "D5", table.overwrite("W"), major("N"), Removed)
  check(delta, "D6", table.append("W"), table.overwrite("N"), becomes("-A -B -W +N"))
  check(delta, "D7", table.append("W"), table.append("N"), Appended)
  check(delta, "D8", table.append("W"), table.kill(1), Appended)
  check(delta, "D9", table.append("W"), minor("N"), AsItIs)
  check(delta, "D10", table.append("W"), major("N"), Appended)
  check(delta, "D11", table.kill(0), table.overwrite("N"), becomes("-A0 -B +N"))
  check(delta, "D12", table.kill(0), table.append("N"), Appended)
  check(delta, "D13", table.kill(0), table.kill(1), Appended)
  check(delta, "D14", table.kill(0), minor("N"), becomes("-A0 -B +N0"))
  check(delta, "D15", table.kill(0), major("N"), Removed)
  check(delta, "D16", minor("M"), table.overwrite("N"), becomes("-M +N"))
  check(delta, "D17", minor("M"), table.append("N"), AsItIs)
  check(delta, "D18", minor("M"), table.kill(1), becomes("-M +M1"))
  check(delta, "D19", minor("M"), minor("N"), RemovedBoth)
  check(delta, "D20", minor("M"), major("N"), becomes("-M +N"))
  check(delta, "D21", major("M"), table.overwrite("N"), becomes("-M +N"))
  check(delta, "D22", major("M"), table.append("N"), AsItIs)
  check(delta, "D23", major("M"), table.kill(1), becomes("-M +M1"))
  check(delta, "D24", major("M"), minor("N"), RemovedBoth)
  check(delta, "D25", major("M"), major("N"), RemovedBoth)

  private val transactional = "maxcompute_transactional"
  check(transactional, "T1", table.overwrite("W"), table.overwrite("N"), becomes("-W +N"))
  check(transactional, "T2", table.overwrite("W"), table.append("N"), AsItIs)
  check(transactional, "T3", table.overwrite("W"), table.kill(1), Appended)
  check(transactional, "T4", table.overwrite("W"), merge("N"), Removed)
  check(transactional, "T5", table.append("W"), table.overwrite("N"), becomes("-A -B -W +N"))
  check(transactional, "T6", table.append("W"), table.append("N"), AsItIs)
  check(transactional, "T7", table.append("W"), table.kill(1), Appended)
  check(transactional, "T8", table.append("W"), merge("N"), Appended)
  check(transactional, "T9", table.kill(0), table.overwrite("N"), becomes("-A0 -B +N"))
  check(transactional, "T10", table.kill(0), table.append("N"), AsItIs)
  check(transactional, "T11", table.kill(0), table.kill(1), Appended)
  check(transactional, "T12", table.kill(0), merge("N"), Removed)
  check(transactional, "T13", merge("M"), table.overwrite("N"), becomes("-M +N"))
  check(transactional, "T14", merge("M"), table.append("N"), AsItIs)
  check(transactional, "T15", merge("M"), table.kill(1), Removed)
  check(transactional, "T16", merge("M"), merge("N"), RemovedBoth)

  private val rows = "row_level"
  check(rows, "other rows of one file", table.kill(0), table.kill(1), becomes("-A0 +A01"))
  check(rows, "the same row", table.kill(1), table.kill(1), Removed)
  check(rows, "DELETE behind a compaction", minor("M"), table.kill(1), becomes("-M +M1"))
  check(rows, "a compaction behind DELETE", table.kill(0), major("N"), becomes("-A0 -B +N0"))
  check(rows, "INSERTs", table.append("W"), table.append("N"), AsItIs)
  check(rows, "two compactions", minor("M"), minor("N"), RemovedBoth)

  for (policy <- Policies.names)
    test(s"$policy: nobody commits behind a winner that leaves the order to a catalog") {
      intercept[ProtocolChangedException](table.judge(policy, table.handOver, table.append("N")))
    }
}
