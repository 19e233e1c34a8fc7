package io.interlock.rules

import io.interlock.rules.OperationClass._
import io.interlock.rules.advice.Advice

class AdviceSuite extends munit.FunSuite {

  private val update = Conflict(
    ConflictKind.ConcurrentAppend,
    policy = "maxcompute_delta",
    operation = "UPDATE",
    operationClass = Mutate,
    readVersion = 2,
    table = "t",
    txnId = "a",
    winner = Some(WinningCommit(3, operationClass = Some(Append))),
    why = ""
  )

  private def advise(conflict: Conflict, partitionColumns: String*) =
    Advice.of(conflict, partitionColumns, Policies.all)

  private def all(advice: Advice) =
    advice.policies ++ advice.policiesByFiles ++ advice.policiesByRows

  test("policies are those whose cell lets the pair pass, always or if it is apart") {
    val advice = advise(update)
    assertEquals(advice.policies, Nil)
    assertEquals(advice.policiesByFiles, Seq("serializable", "write_serializable"))
    assertEquals(advice.policiesByRows, Seq("row_level", "row_serializable"))
    val inserts = advise(update.copy(operationClass = Append))
    assertEquals(inserts.policies, Seq("maxcompute_transactional", "maxcompute_standard"))
  }

  test("the loser's own policy is named only if the two could be apart under it") {
    val own = advise(update.copy(policy = "serializable"))
    assert(own.policiesByFiles.contains("serializable"))
    val inserts = update.copy(operationClass = Append, policy = "maxcompute_transactional")
    assert(!advise(inserts).policies.contains("maxcompute_transactional"))
  }

  test("a compaction has another policy's class of compactions") {
    val compaction = update.copy(
      kind = ConflictKind.ConcurrentDeleteRead,
      policy = "maxcompute_transactional",
      winner = Some(WinningCommit(3, operationClass = Some(Mutate))),
      operationClass = MergeSmallFiles
    )
    assertEquals(advise(compaction).policies.headOption, Some("maxcompute_delta"))
    val compacted = WinningCommit(3, operationClass = Some(MergeSmallFiles))
    val later = compaction.copy(winner = Some(compacted), operationClass = Mutate)
    assertEquals(advise(later).policies, Seq("maxcompute_delta", "row_level", "row_serializable"))
    val notFollowed = later.copy(policy = "row_level", verdict = Some(Verdict.RemapRows))
    assertEquals(advise(notFollowed).policies, Nil)
  }

  test("no policy helps where Delta decides") {
    val kinds = Seq(
      ConflictKind.ConcurrentWrite,
      ConflictKind.ConcurrentTransaction,
      ConflictKind.MetadataChanged,
      ConflictKind.ProtocolChanged
    )
    for (kind <- kinds) {
      val advice = advise(update.copy(kind = kind))
      assertEquals(all(advice), Nil, kind.name)
    }
  }

  test("unknown classes give no policies") {
    val advice = advise(update.copy(winner = None))
    assertEquals(all(advice), Nil)
  }

  test("a retry helps unless the other did the work, or the table is another") {
    def helps(kind: ConflictKind) = advise(update.copy(kind = kind)).retryHelps
    assert(!helps(ConflictKind.ConcurrentTransaction))
    assert(!helps(ConflictKind.ProtocolChanged))
    for (
      kind <- Seq(
        ConflictKind.ConcurrentAppend,
        ConflictKind.ConcurrentWrite,
        ConflictKind.MetadataChanged
      )
    )
      assert(helps(kind), kind.name)
    val compaction = advise(update.copy(operationClass = CompactMinor))
    assert(compaction.retryHelps)
    assert(compaction.retry.contains("inputs are gone"), compaction.retry)
  }

  test("the layout: partitions where there are none, their columns where there are") {
    def layout(later: OperationClass, columns: String*) =
      advise(update.copy(operationClass = later), columns: _*).layout
    assert(layout(Mutate).startsWith("Partition the table"), layout(Mutate))
    assert(layout(Mutate, "day", "country").startsWith("Compare day, country with constants"))
    assert(layout(Append, "day").startsWith("Write other values of day"))
    assert(layout(CompactMinor, "day").contains("PARTITION (day)"))
  }

  test("the predicate: it selected rows, or could not be decided") {
    val selected = advise(update.copy(overlap = Overlap(predicate = Some("(v > 3)")))).layout
    assert(selected.startsWith("(v > 3) matched rows that the winner changed"), selected)
    assert(selected.contains("Partition the table"), selected)
    val rows = Overlap(rows = Seq("{}"), predicate = Some("(v > 3)"))
    val known = advise(update.copy(overlap = rows)).layout
    assert(selected.startsWith(s"$known Partition"), known)
    val open =
      update.copy(overlap = Overlap(predicate = Some("(v > rand())"), undecided = true))
    val undecided = advise(open).layout
    assert(undecided.startsWith("(v > rand()) could not be decided"), undecided)
  }

  test("each of Delta's errors has its own sentence") {
    val kinds =
      Seq("ConcurrentWrite", "ConcurrentTransaction", "MetadataChanged", "ProtocolChanged")
    val layouts =
      kinds.map(ConflictKind.byName).map(kind => advise(update.copy(kind = kind)).layout)
    assertEquals(layouts.distinct.size, 4)
    assertEquals(ConflictKind.byName("NoSuchError"), ConflictKind.Other("NoSuchError"))
  }
}
