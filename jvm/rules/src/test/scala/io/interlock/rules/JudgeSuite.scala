package io.interlock.rules

import io.interlock.rules.OperationClass._

class JudgeSuite extends munit.FunSuite {
  private val delta = Policies.byName("maxcompute_delta").get
  private val standard = Policies.byName("maxcompute_standard").get
  private val p1 = Partition(Map("p" -> "1"))
  private val p2 = Partition(Map("p" -> "2"))
  private val inP1 = AttemptScope.Partitions(Set(p1), Nil)
  private val anywhere = AttemptScope.Partitions(Set(p1), Seq(_ => true))

  private def check(
      name: String,
      earlier: OperationClass,
      changed: ChangedScope,
      later: OperationClass,
      scope: AttemptScope,
      expected: Verdict,
      cell: Option[String],
      policy: Policy = delta
  ): Unit = test(name) {
    val ruling = Judge.judge(policy, Winner(3, earlier, changed), Attempt(later, scope))
    assertEquals(ruling.verdict, expected)
    assertEquals(ruling.cell.map(_.id), cell)
  }

  private def in(partitions: Partition*) = ChangedScope.Partitions(partitions.toSet)

  check("one partition", Append, in(p1), Append, inP1, Verdict.Fail, Some("D7"))
  check("disjoint partitions never conflict", Append, in(p2), Append, inP1, Verdict.AsIs, None)
  check(
    "a predicate selects the winner's",
    Append,
    in(p2),
    Mutate,
    anywhere,
    Verdict.Fail,
    Some("D8")
  )
  check(
    "an unpartitioned winner overlaps with every attempt",
    Append,
    ChangedScope.WholeTable,
    Append,
    inP1,
    Verdict.Fail,
    Some("D7")
  )
  check(
    "an attempt on the whole table",
    Append,
    in(p2),
    Append,
    AttemptScope.WholeTable,
    Verdict.Fail,
    Some("D7")
  )
  check(
    "an attempt that covers nothing",
    Append,
    ChangedScope.WholeTable,
    Append,
    AttemptScope.Partitions(Set.empty, Nil),
    Verdict.AsIs,
    None
  )
  check(
    "a winner that changed no file",
    Mutate,
    ChangedScope.Nothing,
    Mutate,
    AttemptScope.WholeTable,
    Verdict.AsIs,
    None
  )
  check(
    "a metadata winner that changed no file",
    Metadata,
    ChangedScope.Nothing,
    Append,
    AttemptScope.WholeTable,
    Verdict.AsIs,
    None
  )
  check(
    "an attempt that only selects overlaps with an unpartitioned winner",
    Append,
    ChangedScope.WholeTable,
    Mutate,
    AttemptScope.Partitions(Set.empty, Seq(_ => false)),
    Verdict.Fail,
    Some("D8")
  )
  check(
    "one of the winner's partitions",
    Append,
    in(p1, p2),
    Append,
    inP1,
    Verdict.Fail,
    Some("D7")
  )
  check("metadata winners are Delta's", Metadata, in(p1), Append, inP1, Verdict.ByFiles, None)
  check("metadata attempts are Delta's", Append, in(p1), Metadata, inP1, Verdict.ByFiles, None)
  check("a class without a cell fails", Mutate, in(p1), Append, inP1, Verdict.Fail, None, standard)

  test("the scope of a winner is the partitions of its files") {
    assertEquals(ChangedScope.of(partitioned = true, Nil), ChangedScope.Nothing: ChangedScope)
    assertEquals(ChangedScope.of(partitioned = true, Seq(Some(p1), Some(p1))), in(p1): ChangedScope)
    assertEquals(
      ChangedScope.of(partitioned = true, Seq(Some(p1), None)),
      ChangedScope.WholeTable: ChangedScope
    )
    assertEquals(
      ChangedScope.of(partitioned = false, Seq(Some(p1))),
      ChangedScope.WholeTable: ChangedScope
    )
  }

  test("a conflict is raised as the error of its kind") {
    def kind(
        earlier: OperationClass,
        later: OperationClass,
        added: Boolean,
        removed: Boolean,
        onlyRemove: Boolean = false
    ) = ConflictKind.of(earlier, later, added, removed, onlyRemove).toString
    assertEquals(kind(Append, Append, added = true, removed = false), "ConcurrentAppend")
    assertEquals(kind(Overwrite, Mutate, added = false, removed = true), "ConcurrentDeleteRead")
    assertEquals(
      kind(Overwrite, CompactMinor, added = true, removed = true),
      "ConcurrentDeleteRead"
    )
    assertEquals(kind(Append, CompactMajor, added = true, removed = false), "ConcurrentAppend")
    assertEquals(
      kind(CompactMinor, CompactMajor, added = false, removed = true),
      "ConcurrentDeleteDelete"
    )
    assertEquals(
      kind(MergeSmallFiles, Mutate, added = false, removed = true),
      "ConcurrentDeleteRead"
    )
    assertEquals(
      kind(Mutate, Mutate, added = false, removed = true, onlyRemove = true),
      "ConcurrentDeleteDelete"
    )
  }
}
