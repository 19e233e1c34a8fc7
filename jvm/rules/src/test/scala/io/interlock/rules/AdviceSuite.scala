package io.interlock.rules

import io.interlock.rules.OperationClass._
import io.interlock.rules.advice.{Advice, Rejection}

class AdviceSuite extends munit.FunSuite {

  private val update = Rejection(
    ConflictKind.ConcurrentAppend,
    policy = "maxcompute_delta",
    winnerClass = Some(Append),
    operationClass = Some(Mutate),
    partitionColumns = Nil,
    predicate = None,
    undecided = false
  )

  private def advise(rejection: Rejection) = Advice.of(rejection, Policies.all)

  private def all(advice: Advice) =
    advice.policies ++ advice.policiesByFiles ++ advice.policiesByRows

  test("policies are those whose cell lets the pair pass, always or if it is apart") {
    val advice = advise(update)
    assertEquals(advice.policies, Nil)
    assertEquals(advice.policiesByFiles, Seq("serializable", "write_serializable"))
    assertEquals(advice.policiesByRows, Seq("row_level", "row_serializable"))
    val inserts = advise(update.copy(operationClass = Some(Append)))
    assert(
      inserts.policies.startsWith(Seq("maxcompute_transactional", "maxcompute_standard")),
      inserts
    )
  }

  test("the loser's own policy is named only if the two could be apart under it") {
    val own = advise(update.copy(policy = "serializable"))
    assert(own.policiesByFiles.contains("serializable"))
    val inserts = update.copy(operationClass = Some(Append), policy = "maxcompute_transactional")
    assert(!advise(inserts).policies.contains("maxcompute_transactional"))
  }

  test("a compaction has another policy's class of compactions") {
    val compaction = update.copy(
      kind = ConflictKind.ConcurrentDeleteRead,
      policy = "maxcompute_transactional",
      winnerClass = Some(Mutate),
      operationClass = Some(MergeSmallFiles)
    )
    assertEquals(advise(compaction).policies.headOption, Some("maxcompute_delta"))
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
    val advice = advise(update.copy(winnerClass = None))
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
    val compaction = advise(update.copy(operationClass = Some(CompactMinor)))
    assert(compaction.retryHelps)
    assert(compaction.retry.contains("inputs are gone"), compaction.retry)
  }

  test("the layout: partitions where there are none, their columns where there are") {
    def layout(later: OperationClass, columns: String*) =
      advise(update.copy(operationClass = Some(later), partitionColumns = columns)).layout
    assert(layout(Mutate).startsWith("Partition the table"), layout(Mutate))
    assert(layout(Mutate, "day", "country").startsWith("Compare day, country with constants"))
    assert(layout(Append, "day").startsWith("Write other values of day"))
    assert(layout(CompactMinor, "day").contains("PARTITION (day)"))
  }

  test("the predicate: it selected rows, or could not be decided") {
    val selected = advise(update.copy(predicate = Some("(v > 3)"))).layout
    assert(selected.startsWith("(v > 3) matched rows that the winner changed"), selected)
    val open = update.copy(predicate = Some("(v > rand())"), undecided = true)
    val undecided = advise(open).layout
    assert(undecided.startsWith("(v > rand()) could not be decided"), undecided)
  }

  test("each of Delta's errors has its own sentence") {
    val kinds =
      Seq("ConcurrentWrite", "ConcurrentTransaction", "MetadataChanged", "ProtocolChanged")
    val layouts =
      kinds.flatMap(ConflictKind.byName).map(kind => advise(update.copy(kind = kind)).layout)
    assertEquals(layouts.distinct.size, 4)
    assertEquals(ConflictKind.byName("NoSuchError"), None)
  }
}
