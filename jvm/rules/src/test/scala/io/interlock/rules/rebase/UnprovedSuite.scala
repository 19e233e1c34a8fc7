package io.interlock.rules.rebase

/** What the rebases refuse, and why. A vector's token is the text of its rows, as in `1,4`. */
class UnprovedSuite extends munit.FunSuite {
  private val rebases =
    new Rebases(token => RowSet.of(token.split(',').toSeq.map(_.toLong): _*))

  private val otherVector = "the compaction read a with another deletion vector"
  private val withoutIds = "its files have no row ids"
  private val unordered = "a compaction has moved rows without recording where to, as ZORDER BY, " +
    "clustering and writers without Interlock do (ALTER TABLE ... COMPACT records it)"
  private def incomplete(path: String) = s"what the compaction recorded of $path does not add up"

  /** A compaction of file a into output o of ten rows. */
  private def into(token: String)(segments: Segment*): Compaction =
    Compaction(Map("a" -> token), Seq(Output("o", 10, RowSet.empty, segments)))

  /** Both rebases that follow a MUTATE refuse. */
  private def check(
      name: String,
      compaction: Compaction,
      before: String,
      after: Option[String],
      reason: String
  )(implicit loc: munit.Location): Unit = test(name) {
    val changes = Seq(FileChange("a", before, after))
    assertEquals(rebases.remapRows(changes, compaction), Left(reason))
    assertEquals(rebases.rebaseCompaction(compaction, changes), Left(reason))
  }

  private def checkSupersede(
      name: String,
      attempt: Compaction,
      winner: Compaction,
      reason: String
  )(implicit loc: munit.Location): Unit = test(s"SUPERSEDE: $name") {
    assertEquals(rebases.supersede(attempt, winner, _ => ""), Left(reason))
  }

  private val whole = into("")(Segment("a", "", 0, 10, 0))

  check("the input had another vector", whole, before = "3", after = Some("3,4"), otherVector)
  check(
    "dead rows come back",
    whole.copy(Map("a" -> "3")),
    "3",
    Some("4"),
    "dead rows of a came back to life"
  )
  check(
    "rows die that were not there to be compacted",
    into("")(Segment("a", "1", 0, 10, 0)),
    before = "",
    after = Some("1"),
    "rows of a die that the compaction had found dead"
  )
  check("nothing tells where a file that is gone went", into("")(), "", None, withoutIds)
  check("nothing tells where rows went that die", into("")(), "", Some("1"), withoutIds)
  check("a row dies behind the last segment", whole, "", Some("10"), incomplete("a"))

  private val gap = into("")(Segment("a", "", 0, 3, 0), Segment("a", "", 4, 2, 3))
  check("a row dies between segments", gap, "", Some("3"), incomplete("a"))
  check("a file is gone and there is a gap between segments", gap, "", None, incomplete("a"))
  check(
    "a rank is in two segments",
    into("")(Segment("a", "", 0, 3, 0), Segment("a", "", 2, 3, 3)),
    before = "",
    after = Some("0"),
    incomplete("a")
  )
  check(
    "ranks are of different vectors",
    into("1")(Segment("a", "", 0, 3, 0), Segment("a", "1", 3, 3, 3)),
    before = "1",
    after = Some("0,1"),
    incomplete("a")
  )
  check(
    "segments share a row of the output",
    into("")(Segment("a", "", 0, 3, 0), Segment("b", "", 0, 3, 2)),
    before = "",
    after = Some("0"),
    incomplete("o")
  )
  check(
    "a segment ends behind the output",
    into("")(Segment("a", "", 0, 10, 1)),
    before = "",
    after = Some("0"),
    incomplete("o")
  )

  checkSupersede(
    "the shared input was removed with another vector",
    whole,
    whole.copy(Map("a" -> "1")),
    otherVector
  )
  checkSupersede(
    "the attempt removes the shared input with another vector",
    whole.copy(Map("a" -> "1")),
    whole,
    otherVector
  )
  checkSupersede(
    "the shared input was read with another vector",
    into("1")(Segment("a", "", 0, 10, 0)),
    into("1")(Segment("a", "1", 0, 9, 0)),
    otherVector
  )
  checkSupersede("the winner recorded nothing", whole, into("")(), unordered)
  checkSupersede("the attempt recorded nothing", into("")(), whole, unordered)
  checkSupersede(
    "the winner recorded nothing of a file",
    whole,
    into("")(Segment("b", "", 0, 10, 0)),
    "the compaction did not record where the rows of a went"
  )
  checkSupersede(
    "the winner recorded less",
    whole,
    into("")(Segment("a", "", 0, 9, 0)),
    incomplete("a")
  )
  checkSupersede(
    "the winner left a gap, and the rows around it are as many as the attempt's",
    into("")(Segment("a", "", 0, 5, 0)),
    gap,
    incomplete("a")
  )

  private val foreign = "o also holds rows that were not to be compacted"
  checkSupersede(
    "the winner's output holds rows of a file that the attempt did not read",
    into("")(Segment("a", "", 0, 5, 0)),
    Compaction(
      Map("a" -> "", "b" -> ""),
      into("")(Segment("a", "", 0, 5, 0), Segment("b", "", 0, 5, 5)).outputs
    ),
    foreign
  )
  checkSupersede(
    "the winner's output holds rows of unknown origin",
    into("")(Segment("a", "", 0, 5, 0)),
    into("")(Segment("a", "", 0, 5, 2)),
    foreign
  )
  checkSupersede(
    "the attempt did not copy all rows of the winner's output",
    into("")(Segment("a", "", 0, 5, 0)),
    whole,
    foreign
  )

  /** Rows 1 and 2 of a die, whose ids are 11 and 12. */
  private def checkIds(
      name: String,
      reason: String,
      found: Seq[IdentifiedRows],
      gone: Seq[IdentifiedRows] = Seq(identified("a", 1L -> 11L, 2L -> 12L))
  )(implicit loc: munit.Location): Unit = test(s"by id: $name") {
    val rowIds = new RowIds {
      def of(dying: Seq[Dying]) = Right(gone)
      def having(ids: RowSet, sources: Seq[String]) = Right(found)
    }
    val byId = new Rebases(token => RowSet.of(token.split(',').toSeq.map(_.toLong): _*), rowIds)
    val changes = Seq(FileChange("a", "", Some("1,2")))
    assertEquals(byId.remapRows(changes, into("")()), Left(reason))
  }

  private def identified(path: String, ids: (Long, Long)*) =
    IdentifiedRows(path, RowSet.of(ids.map(_._1): _*), RowSet.of(ids.map(_._2): _*))

  checkIds(
    "a row is found nowhere",
    "of 2 rows 1 were found by their ids, in 1 places",
    found = Seq(identified("o", 3L -> 11L))
  )
  checkIds(
    "a row is found in two files",
    "of 2 rows 2 were found by their ids, in 3 places",
    found = Seq(identified("o", 3L -> 11L, 4L -> 12L), identified("p", 0L -> 11L))
  )
  checkIds(
    "a row is found twice in a file, and another one nowhere",
    "of 2 rows 1 were found by their ids, in 2 places",
    found = Seq(identified("o", 3L -> 11L, 4L -> 11L))
  )
  checkIds(
    "another row is found",
    "of 2 rows 2 were found by their ids, in 2 places",
    found = Seq(identified("o", 3L -> 11L, 4L -> 13L))
  )
  checkIds(
    "two rows have one id",
    "of 2 rows 1 were found by their ids, in 2 places",
    gone = Seq(identified("a", 1L -> 11L, 2L -> 11L)),
    found = Seq(identified("o", 3L -> 11L, 4L -> 11L))
  )
  checkIds(
    "the file has not all the rows",
    "a has not all the rows that die in it",
    gone = Seq(identified("a", 1L -> 11L)),
    found = Seq(identified("o", 3L -> 11L))
  )
}
