package io.interlock.rules

import io.interlock.rules.OperationClass._

class PolicyTextSuite extends munit.FunSuite {
  private val good =
    """|policy     p
       |source     somewhere
       |cells      X
       |compaction COMPACT_MINOR
       |# a comment
       || earlier \ later | OVERWRITE    | APPEND | COMPACT_MINOR |
       || OVERWRITE       | REPLACE_LIVE | FAIL   | FAIL          |
       || APPEND          | AS_IS        | AS_IS  | AS_IS         |
       || COMPACT_MINOR   | BY_FILES     | AS_IS  | FAIL          |
       |""".stripMargin

  private def refusal(text: String, name: Option[String] = None): String =
    intercept[MalformedPolicy](PolicyText.parse("p.policy", text, name)).getMessage

  private def rejects(name: String, from: String, to: String, message: String): Unit =
    test(name) {
      assert(good.contains(from))
      val told = refusal(good.replace(from, to))
      assert(told.contains(message), told)
    }

  test("reads a matrix row by row, earlier before later") {
    val policy = PolicyText.parse("p.policy", good)
    assertEquals(
      policy.cells.take(5).map(c => (c.id, c.earlier.name, c.later.name, c.verdict.name)),
      Seq(
        ("X1", "OVERWRITE", "OVERWRITE", "REPLACE_LIVE"),
        ("X2", "OVERWRITE", "APPEND", "FAIL"),
        ("X3", "OVERWRITE", "COMPACT_MINOR", "FAIL"),
        ("X4", "APPEND", "OVERWRITE", "AS_IS"),
        ("X5", "APPEND", "APPEND", "AS_IS")
      )
    )
    assertEquals(policy.isolation, "Serializable")
  }

  test("a policy has the name it is known by, and may leave it out") {
    val unnamed = good.replace("policy     p\n", "")
    assertEquals(PolicyText.parse("x", unnamed, Some("q")).name, "q")
    assertEquals(PolicyText.parse("x", good, Some("p")).name, "p")
    assert(refusal(good, Some("q")).contains("line 1: the policy calls itself 'p'; call it 'q'"))
    assert(refusal(unnamed).contains("has no line 'policy'"))
  }

  rejects("an unknown verdict", "FAIL   |", "FIAL   |", "line 7: cell OVERWRITE -> APPEND: 'FIAL'")
  rejects("an unknown class", "| APPEND |", "| APEND |", "line 6: 'APEND' is no operation class")
  rejects("a class twice", "| APPEND |", "| OVERWRITE |", "line 6: names a class twice")
  rejects("METADATA", "| APPEND |", "| METADATA |", "line 6: names METADATA")
  rejects("no APPEND", "| APPEND |", "| MUTATE |", "line 6: lacks APPEND")
  rejects("no OVERWRITE", "later | OVERWRITE", "later | MUTATE", "line 6: lacks OVERWRITE")
  rejects(
    "a row out of order",
    "| APPEND          |",
    "| MUTATE          |",
    "line 8: must be the row of APPEND"
  )
  rejects("a short row", "| FAIL   | FAIL          |", "| FAIL   |", "line 7: has 2 cells")
  rejects(
    "a missing row",
    "| COMPACT_MINOR   | BY_FILES     | AS_IS  | FAIL          |",
    "",
    "2 rows"
  )
  rejects(
    "a row too many",
    "# a comment",
    "| APPEND | AS_IS | AS_IS | AS_IS |",
    "line 5: 'AS_IS' is no operation class"
  )
  rejects("a missing line", "compaction COMPACT_MINOR", "", "has no line 'compaction'")
  rejects("a missing source", "source     somewhere", "", "has no line 'source'")
  rejects("a line twice", "# a comment", "cells Y", "line 5: says 'cells' again, as line 3 does")
  rejects("an unknown key", "cells ", "sells ", "line 3: is no '<key> <value>'")
  rejects("an unknown isolation", "# a comment", "isolation Snapshot", "line 5: 'Snapshot' is no")
  rejects(
    "a class that no compaction has",
    "compaction COMPACT_MINOR",
    "compaction MERGE_SMALLFILES",
    "line 4: the matrix has no MERGE_SMALLFILES"
  )
  rejects(
    "OPTIMIZE as a compaction of the whole scope",
    "compaction COMPACT_MINOR",
    "compaction COMPACT_MAJOR",
    "line 4: OPTIMIZE cannot be COMPACT_MAJOR"
  )
  rejects(
    "a verdict where it would leave the table wrong",
    "| AS_IS        |",
    "| SUPERSEDE    |",
    "line 8: cell APPEND -> OVERWRITE: SUPERSEDE can only stand where"
  )

  test("the digest is that of the rules: not of name, source, numbers, layout or order") {
    val digest = PolicyText.parse("x", good).digest
    assert(digest.matches("[0-9a-f]{16}"), digest)
    val reordered =
      """|source elsewhere
         |isolation Serializable
         |compaction   COMPACT_MINOR
         ||x|APPEND|COMPACT_MINOR|OVERWRITE|
         ||APPEND|AS_IS|AS_IS|AS_IS|
         ||COMPACT_MINOR|AS_IS|FAIL|BY_FILES|
         ||OVERWRITE|FAIL|FAIL|REPLACE_LIVE|""".stripMargin
    assertEquals(PolicyText.parse("y", reordered, Some("q")).digest, digest)
    val others = Seq(
      good.replace("BY_FILES", "FAIL    "),
      good.replace("# a comment", "isolation WriteSerializable"),
      good.replace("COMPACT_MINOR", "MERGE_SMALLFILES")
    ).map(PolicyText.parse("x", _).digest)
    assertEquals((digest +: others).distinct.size, 4)
    assertEquals(Policies.all.map(_.digest).distinct.size, Policies.names.size)
  }

  /** Every verdict in every cell of a policy of all classes, against a list written by hand. */
  private val places: Map[Verdict, Set[(OperationClass, OperationClass)]] = {
    val classes = Set[OperationClass](Overwrite, Append, Mutate, CompactMinor, CompactMajor)
    val anywhere = for (earlier <- classes; later <- classes) yield (earlier, later)
    val compact = Set[OperationClass](CompactMinor, CompactMajor)
    Map(
      Verdict.Fail -> anywhere,
      Verdict.ByFiles -> anywhere,
      Verdict.AsIs -> (classes.map(Append -> _) ++ classes.map(_ -> Append)),
      Verdict.ByRows -> classes.flatMap(c => Set(c -> Append, c -> Mutate)),
      Verdict.ReplaceLive -> classes.map(_ -> Overwrite),
      Verdict.RemapRows -> compact.map(_ -> Mutate),
      Verdict.RebaseCompaction -> compact.flatMap(c => Set(Append -> c, Mutate -> c)),
      Verdict.Supersede -> Set(CompactMinor -> CompactMajor)
    )
  }

  test("a verdict stands only where it leaves the table right") {
    val classes = Seq(Overwrite, Append, Mutate, CompactMinor, CompactMajor)
    assertEquals(places.keySet, Verdict.all.toSet)
    for (verdict <- Verdict.all; earlier <- classes; later <- classes) {
      val rows = classes.map { row =>
        val cells = classes.map(c => if ((row, c) == ((earlier, later))) verdict else Verdict.Fail)
        s"| $row | ${cells.mkString(" | ")} |"
      }
      val text = s"source s\ncompaction COMPACT_MINOR\n| x | ${classes.mkString(" | ")} |\n" +
        rows.mkString("\n")
      val read =
        try { PolicyText.parse("p", text, Some("p")); "" }
        catch { case malformed: MalformedPolicy => malformed.getMessage }
      val expected = places(verdict).contains((earlier, later))
      assertEquals(read.isEmpty, expected, s"$verdict at $earlier -> $later: $read")
      if (!expected)
        assert(
          read.contains(s"line ${4 + classes.indexOf(earlier)}: cell $earlier -> $later"),
          read
        )
    }
  }

  test("a small file merge is superseded by a MAJOR, if it is the policy's compaction") {
    val text =
      """|source s
         |compaction MERGE_SMALLFILES
         || x | OVERWRITE | APPEND | MERGE_SMALLFILES | COMPACT_MAJOR |
         || OVERWRITE | FAIL | FAIL | FAIL | FAIL |
         || APPEND | FAIL | FAIL | FAIL | FAIL |
         || MERGE_SMALLFILES | FAIL | FAIL | FAIL | SUPERSEDE |
         || COMPACT_MAJOR | FAIL | FAIL | FAIL | FAIL |""".stripMargin
    val verdict = PolicyText.parse("p", text, Some("p")).cell(MergeSmallFiles, CompactMajor)
    assertEquals(verdict.map(_.verdict), Some(Verdict.Supersede))
  }
}
