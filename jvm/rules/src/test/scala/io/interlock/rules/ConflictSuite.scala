package io.interlock.rules

import io.interlock.rules.OperationClass._

class ConflictSuite extends munit.FunSuite {

  private val insert = Conflict(
    ConflictKind.ConcurrentAppend,
    policy = "maxcompute_delta",
    operation = "INSERT INTO",
    operationClass = Append,
    readVersion = 2,
    table = "t",
    txnId = "a",
    winner = Some(WinningCommit(3, Some("INSERT INTO"), Some(Append), Some("b"), Some("ann"))),
    why = "version 3 (INSERT INTO by ann) added data in p=1",
    rule = Some("D7"),
    verdict = Some(Verdict.Fail),
    ruling = Some("APPEND fails after APPEND"),
    scope = Some("p=1")
  )

  test("it says what the rule says of two classes") {
    assertEquals(
      Conflict.ruling(Verdict.Fail, MergeSmallFiles, Mutate, None),
      "MUTATE fails after MERGE_SMALLFILES"
    )
    assertEquals(
      Conflict.ruling(Verdict.RemapRows, CompactMinor, Mutate, Some("a file is unknown")),
      "MUTATE succeeds after COMPACT_MINOR only if rows can be followed, but a file is unknown"
    )
    assertEquals(
      Conflict.ruling(Verdict.ByRows, Mutate, Mutate, None),
      "MUTATE fails after MUTATE if they overlap"
    )
  }

  test("its first sentences name neither classes nor rules") {
    val lost = "INSERT INTO lost: version 3 (INSERT INTO by ann) added data in p=1. "
    assertEquals(
      insert.summary,
      s"${lost}Policy maxcompute_delta ${Policies.lets("maxcompute_delta", None)}."
    )
    assertEquals(
      insert.copy(policy = "mine").summary,
      s"${lost}Policy mine does not let both commit."
    )
    val ofMetadata = insert.copy(kind = ConflictKind.MetadataChanged, rule = None)
    assert(ofMetadata.summary.contains("pass harmless changes of metadata"), ofMetadata.summary)
    val everywhere = Seq(
      insert.copy(rule = None),
      insert.copy(kind = ConflictKind.ConcurrentWrite)
    )
    everywhere.foreach(it => assertEquals(it.summary, s"${lost}It is so under every policy."))
    assertEquals(Policies.names.map(Policies.lets(_, None)).distinct.size, Policies.names.size)
  }

  test("what a policy lets happen is said of the cell of the two jobs") {
    def lets(policy: String, verdict: Verdict) = Policies.lets(policy, Some(verdict.name))
    assert(lets("row_level", Verdict.ByFiles).endsWith("file by file"))
    assert(lets("row_level", Verdict.ByRows).contains("change the same rows"))
    assertEquals(lets("row_level", Verdict.RemapRows), lets("mine", Verdict.RemapRows))
    assertEquals(
      Seq(Verdict.AsIs, Verdict.ByRows, Verdict.Fail).map(lets("mine", _)),
      Seq("lets both commit", "lets both commit unless they overlap", "does not let both commit")
    )
  }

  test("a winner is named by what is known of it") {
    assertEquals(WinningCommit(6).toString, "version 6")
    assertEquals(WinningCommit(6, Some("UPDATE")).toString, "version 6 (UPDATE)")
    assertEquals(insert.winner.map(_.withClass), Some("version 3 (INSERT INTO, APPEND)"))
    assertEquals(WinningCommit(6).withClass, "version 6 (unknown)")
  }

  test("rows are counted, unless there may be more than are shown") {
    val counted = Seq("rows", "1 row", "2 rows", "rows")
    assertEquals((0 to 3).map(n => Overlap.counted(Seq.fill(n)("{}"))), counted)
  }

  test("its facts are read as they were written") {
    val overlap = Overlap(Seq("f"), Seq("{}", "{}"), Seq("{}"), Some("(v > 3)"), undecided = true)
    val full = insert.copy(overlap = overlap, beforeWriting = true)
    val byDelta = Conflict(
      ConflictKind.Other("NewConflict"),
      "p",
      "UPDATE",
      Mutate,
      2,
      "t",
      "a",
      winner = None,
      why = "w"
    )
    for (conflict <- Seq(insert, full, byDelta))
      assertEquals(ConflictFacts.read(ConflictFacts.of(conflict)), Some(conflict))
    assertEquals(ConflictFacts.of(byDelta).size, 8)
    for (fact <- ConflictFacts.of(byDelta).keys)
      assertEquals(ConflictFacts.read(ConflictFacts.of(byDelta) - fact), None, fact)
  }
}
