package io.interlock.rules.rebase

/** The rules of the rebases one by one. A vector's token is the text of its rows, as in `1,4-6`. */
class RebasesSuite extends munit.FunSuite {
  private val rebases = new Rebases(rows)

  private def rows(token: String): RowSet =
    token.split(',').map(_.split('-').map(_.toLong)).foldLeft(RowSet.empty) { (rows, run) =>
      rows.union(RowSet.range(run.head, run.last + 1))
    }

  private def output(path: String, count: Long, dead: String = "")(segments: Segment*): Output =
    Output(path, count, if (dead.isEmpty) RowSet.empty else rows(dead), segments)

  private def marked(token: String, after: String, path: String = "a") =
    FileChange(path, token, Some(after))
  private def gone(token: String, path: String = "a") = FileChange(path, token, None)

  /** File a, without its rows 1 and 4, behind ten other rows. */
  private val packed =
    Compaction(Map("a" -> "1,4"), Seq(output("o", 15)(Segment("a", "1,4", 0, 5, 10))))

  private def checkRemap(winner: Compaction, changes: FileChange*)(dead: (String, String)*) =
    assertEquals(
      rebases.remapRows(changes, winner),
      Right(Remapped(changes.map(_.path).toSet, dead.toMap.view.mapValues(rows).toMap))
    )

  private def checkUnited(attempt: FileChange*)(winner: FileChange*)(dead: (String, String)*) =
    assertEquals(
      rebases.uniteRows(attempt, winner),
      Right(dead.toMap.view.mapValues(rows).toMap)
    )

  private def checkApart(attempt: FileChange, winner: FileChange, reason: String) = {
    val found = rebases.uniteRows(Seq(attempt), Seq(winner))
    assert(found.left.exists(_.contains(reason)), found)
  }

  test("BY_ROWS: other rows of one file are united, other files are left alone") {
    checkUnited(marked("", "1-2"))(marked("", "4"))("a" -> "1-2,4")
    checkUnited(marked("7", "1,7"))(marked("7", "0,7"))("a" -> "0-1,7")
    checkUnited(marked("", "1"), gone("", "b"))(marked("", "2"), gone("", "c"))("a" -> "1-2")
    checkUnited(marked("", "1"))(marked("", "1", "b"))()
  }

  test("BY_ROWS: a row that both changed is found, whatever was dead before") {
    checkApart(marked("", "1-3"), marked("", "3-5"), "changed 1 row that it changes too")
    checkApart(marked("0", "0,2-4"), marked("0", "0,3-9"), "changed 2 rows that it changes too")
  }

  test("BY_ROWS: a file that one of them changed as a whole") {
    checkApart(gone(""), marked("", "3"), "changed it as a whole")
    checkApart(marked("", "3"), gone(""), "changed it as a whole")
    checkApart(gone(""), gone(""), "changed it as a whole")
  }

  test("BY_ROWS: nothing is united over another vector, nor over rows that came back") {
    checkApart(marked("", "1"), marked("0", "0,2"), "vector")
    checkApart(marked("0", "0,1"), marked("0", "2"), "came back to life")
  }

  test("REMAP_ROWS: a row dies at its rank among the rows which the compaction read") {
    checkRemap(packed, marked("1,4", "1,3,4,6"))("o" -> "12,14")
    checkRemap(packed, marked("1,4", "0,1,4,5"))("o" -> "10,13")
  }

  test("REMAP_ROWS: a file that is gone takes all its rows along") {
    checkRemap(packed, gone("1,4"))("o" -> "10-14")
  }

  test("REMAP_ROWS: several inputs are packed into one output, which has dead rows already") {
    val (a, b) = (Segment("a", "", 0, 3, 0), Segment("b", "0", 0, 4, 3))
    val winner = Compaction(Map("a" -> "", "b" -> "0"), Seq(output("o", 7, dead = "0")(b, a)))
    checkRemap(winner, marked("", "1-2"), marked("0", "0,3", "b"))("o" -> "0-2,5")
  }

  test("REMAP_ROWS: one input is split over several outputs") {
    val winner = Compaction(
      Map("a" -> ""),
      Seq(
        output("o", 7)(Segment("a", "", 0, 5, 2)),
        output("p", 5)(Segment("a", "", 5, 4, 0), Segment("a", "", 9, 1, 4)),
        output("q", 5)()
      )
    )
    checkRemap(winner, marked("", "4-6,9"))("o" -> "6", "p" -> "0-1,4")
    checkRemap(winner, gone(""))("o" -> "2-6", "p" -> "0-4")
  }

  test("REMAP_ROWS: files have more than 2^31 rows, and more than 2^32") {
    val (cut, end) = (3L << 30, 7L << 30)
    val winner = Compaction(
      Map("a" -> "0"),
      Seq(
        output("o", cut)(Segment("a", "0", 0, cut, 0)),
        output("p", end)(Segment("a", "0", cut, end - cut, 5))
      )
    )
    checkRemap(winner, gone("0"))("o" -> s"0-${cut - 1}", "p" -> s"5-${end - cut + 4}")
    checkRemap(winner, marked("0", s"0-3,9-$end"))(
      "o" -> s"0-2,8-${cut - 1}",
      "p" -> s"5-${end - cut + 4}"
    )
  }

  test("REMAP_ROWS: only new dead rows in compacted files count") {
    val other = marked("", "3", path = "elsewhere")
    assertEquals(rebases.remapRows(Seq(other), packed), Right(Remapped(Set.empty, Map.empty)))
    checkRemap(packed, marked("1,4", "1,4"))()
  }

  test("REMAP_ROWS: rows are followed through two compactions, one of which superseded the other") {
    val minor = Compaction(
      Map("a" -> "1", "b" -> ""),
      Seq(output("m", 5)(Segment("a", "1", 0, 3, 0), Segment("b", "", 0, 2, 3)))
    )
    val attempt = Compaction(
      Map("a" -> "1", "b" -> "", "c" -> ""),
      Seq(
        output("x", 3)(Segment("c", "", 0, 1, 0), Segment("b", "", 0, 2, 1)),
        output("y", 3)(Segment("a", "1", 0, 3, 0))
      )
    )
    val major = rebases.supersede(attempt, minor, _ => "")
    assertEquals(
      major,
      Right(
        Compaction(
          Map("m" -> "", "c" -> ""),
          Seq(
            output("x", 3)(Segment("c", "", 0, 1, 0), Segment("m", "", 3, 2, 1)),
            output("y", 3)(Segment("m", "", 0, 3, 0))
          )
        )
      )
    )
    checkRemap(minor, marked("1", "1-2"), gone("", "b"))("m" -> "1,3-4")
    checkRemap(major.toOption.get, marked("", "1,3-4", "m"))("x" -> "1-2", "y" -> "1")
  }

  test(
    "REBASE_COMPACTION: an input whose vector grew is removed with it, and again with the next"
  ) {
    val once = rebases.rebaseCompaction(packed, Seq(marked("1,4", "1,3,4")))
    val expected = packed.copy(
      inputs = Map("a" -> "1,3,4"),
      outputs = packed.outputs.map(_.copy(dead = rows("12")))
    )
    assertEquals(once, Right(expected))
    val twice = rebases.rebaseCompaction(expected, Seq(marked("1,3,4", "1,3,4,5")))
    assertEquals(twice.map(_.inputs), Right(Map("a" -> "1,3,4,5")))
    assertEquals(twice.map(_.outputs.head.dead), Right(rows("12-13")))
  }

  test("REBASE_COMPACTION: an input that is gone is none any more, and its rows are dead") {
    val attempt = Compaction(
      Map("a" -> "", "b" -> ""),
      Seq(output("o", 2)(Segment("a", "", 0, 2, 0)), output("p", 2)(Segment("b", "", 0, 2, 0)))
    )
    val rebased = rebases.rebaseCompaction(attempt, Seq(gone(""), gone("", "elsewhere")))
    assertEquals(rebased.map(_.inputs), Right(Map("b" -> "")))
    assertEquals(rebased.map(_.outputs.map(_.dead.size)), Right(Seq(2L, 0L)))
  }

  test("SUPERSEDE: a segment is cut where the superseded compaction went on to its next output") {
    val minor = Compaction(
      Map("a" -> "", "b" -> ""),
      Seq(
        output("m", 7)(Segment("b", "", 0, 1, 0), Segment("a", "", 0, 6, 1)),
        output("n", 4)(Segment("a", "", 6, 4, 0))
      )
    )
    val attempt = Compaction(
      Map("a" -> "", "b" -> "", "c" -> ""),
      Seq(
        output("x", 5)(Segment("a", "", 0, 4, 0), Segment("b", "", 0, 1, 4)),
        output("y", 8)(Segment("c", "", 0, 2, 0), Segment("a", "", 4, 6, 2))
      )
    )
    val expected = Compaction(
      Map("m" -> "", "n" -> "", "c" -> ""),
      Seq(
        output("x", 5)(Segment("m", "", 1, 4, 0), Segment("m", "", 0, 1, 4)),
        output("y", 8)(
          Segment("c", "", 0, 2, 0),
          Segment("m", "", 5, 2, 2),
          Segment("n", "", 0, 4, 4)
        )
      )
    )
    assertEquals(rebases.supersede(attempt, minor, _ => ""), Right(expected))
  }

  test("SUPERSEDE: rows that died in the superseded compaction have no rank in its outputs") {
    val minor = Compaction(
      Map("a" -> "1", "b" -> ""),
      Seq(
        output("m", 5, dead = "1")(Segment("a", "", 0, 3, 0), Segment("b", "", 0, 2, 3)),
        output("n", 2)(Segment("a", "", 3, 2, 0))
      )
    )
    val attempt = Compaction(
      Map("a" -> "1", "b" -> ""),
      Seq(output("x", 6)(Segment("a", "1", 0, 4, 0), Segment("b", "", 0, 2, 4)))
    )
    val expected = Compaction(
      Map("m" -> "1", "n" -> ""),
      Seq(
        output("x", 6)(
          Segment("m", "1", 0, 2, 0),
          Segment("n", "", 0, 2, 2),
          Segment("m", "1", 2, 2, 4)
        )
      )
    )
    assertEquals(rebases.supersede(attempt, minor, Map("m" -> "1", "n" -> "")), Right(expected))
  }

  test("SUPERSEDE: segments that follow one another in both outputs become one") {
    val sources = (1 to 1000).map(i => s"a$i")
    def packed(output: String) =
      this.output(output, 1000)(sources.zipWithIndex.map { case (source, at) =>
        Segment(source, "", 0, 1, at.toLong)
      }: _*)
    val inputs = sources.map(_ -> "").toMap
    val (attempt, minor) =
      (Compaction(inputs, Seq(packed("x"))), Compaction(inputs, Seq(packed("m"))))
    val expected = Compaction(Map("m" -> ""), Seq(output("x", 1000)(Segment("m", "", 0, 1000, 0))))
    assertEquals(rebases.supersede(attempt, minor, _ => ""), Right(expected))
  }

  test("SUPERSEDE: of an input without live rows a compaction need not say anything") {
    val minor = Compaction(Map("a" -> "0-4"), Nil)
    val attempt = Compaction(Map("a" -> "0-4"), Seq(output("x", 0)(Segment("a", "0-4", 0, 0, 0))))
    val expected = Compaction(Map.empty, Seq(output("x", 0)()))
    assertEquals(rebases.supersede(attempt, minor, _ => ""), Right(expected))
  }
}
