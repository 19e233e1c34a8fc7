package io.interlock.rules

/** The shipped matrices against the documents' tables, written down a second time. */
class PoliciesSuite extends munit.FunSuite {

  /** Rows as in the document: `both` and `fail`, earlier jobs down, later jobs across. */
  private def outcomes(policy: String): Seq[String] = {
    val p = Policies.byName(policy).get
    p.cells.grouped(p.classes.size).map { row =>
      row.map(c => if (c.verdict == Verdict.Fail) "fail" else "both").mkString(" ")
    }.toSeq
  }

  test("maxcompute_delta: 12 cells succeed and 13 fail, as in the document") {
    assertEquals(
      outcomes("maxcompute_delta"),
      Seq(
        "both fail fail fail fail",
        "both fail fail both fail",
        "both fail fail both fail",
        "both both both fail both",
        "both both both fail fail"
      )
    )
  }

  test("maxcompute_transactional: INSERTs never conflict, the rest always does") {
    assertEquals(outcomes("maxcompute_transactional"), Seq.fill(4)("both both fail fail"))
  }

  test("maxcompute_standard: the transactional matrix without UPDATE and DELETE") {
    assertEquals(outcomes("maxcompute_standard"), Seq.fill(3)("both both fail"))
    assert(!Policies.byName("maxcompute_standard").get.permits(OperationClass.Mutate))
  }

  test("every overwrite after anything replaces what is live") {
    for {
      policy <- Policies.all.filter(_.name.startsWith("maxcompute"))
      cell <- policy.cells if cell.later == OperationClass.Overwrite
    } assertEquals(cell.verdict, Verdict.ReplaceLive: Verdict, s"${policy.name} ${cell.label}")
  }

  test("maxcompute_delta and the policies by rows map rows") {
    val names = Policies.all.filter(_.remapsRows).map(_.name)
    assertEquals(names, Seq("maxcompute_delta", "row_level", "row_serializable"))
  }

  test("row_serializable: the matrix of row_level at the level Serializable") {
    val policies = Seq("row_level", "row_serializable").flatMap(Policies.byName)
    assertEquals(policies.map(_.cells).distinct.size, 1)
    assertEquals(policies.map(_.isolation), Seq("WriteSerializable", "Serializable"))
  }

  test("row_level: compactions and changes of rows never conflict, whichever comes first") {
    import OperationClass._
    val policy = Policies.byName("row_level").get
    for (compaction <- Seq(CompactMinor, CompactMajor)) {
      assertEquals(policy.cell(compaction, Mutate).map(_.verdict), Some(Verdict.RemapRows))
      assertEquals(policy.cell(Mutate, compaction).map(_.verdict), Some(Verdict.RebaseCompaction))
    }
    assertEquals(policy.cell(Mutate, Mutate).map(_.verdict), Some(Verdict.ByRows))
  }

  test("an unknown name finds none, and the nearest one is named") {
    assertEquals(Policies.byName("maxcompute"), None)
    assertEquals(NearestName.of("maxcompute-delta", Policies.names), "maxcompute_delta")
    assertEquals(NearestName.of("serialisable", Policies.names), "serializable")
  }
}
