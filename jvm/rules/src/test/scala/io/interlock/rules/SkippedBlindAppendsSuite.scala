package io.interlock.rules

class SkippedBlindAppendsSuite extends munit.FunSuite {
  private def append(version: Long, file: String) =
    SerialFacts(version, true, true, false, Some(0), Set(file), Set.empty)

  /** An UPDATE that reads what it changes, in these files. */
  private def update(version: Long, files: String*) =
    SerialFacts(version, false, true, true, Some(version - 1), Set(s"u$version"), files.toSet)

  private def merge(version: Long, readVersion: Option[Long]) =
    SerialFacts(version, false, true, false, readVersion, Set(s"m$version"), Set.empty)

  private def compaction(version: Long, from: String, to: String) =
    SerialFacts(version, false, false, false, Some(version - 1), Set(to), Set(from))

  /** The versions of the appends that each winner has read. */
  private def read(winners: SerialFacts*): Seq[Seq[Long]] =
    winners.foldLeft((Seq.empty[Seq[Long]], SkippedBlindAppends.none[Long])) {
      case ((all, skipped), winner) =>
        val (found, left) = skipped.readBy(winner.version, winner)
        (all :+ found, left)
    }._1

  test("an UPDATE has read the appends whose files it removes, once") {
    val winners = Seq(append(1, "a"), append(2, "b"), update(3, "b"), update(4, "b", "a"))
    assertEquals(read(winners: _*), Seq(Nil, Nil, Seq(2L), Seq(1L)))
  }

  test("a MERGE has read what there was, all of it where it does not say what it read") {
    assertEquals(read(append(1, "a"), append(2, "b"), merge(3, Some(1))).last, Seq(1L))
    assertEquals(read(append(1, "a"), append(2, "b"), merge(3, None)).last, Seq(1L, 2L))
    assertEquals(read(append(1, "a"), merge(2, Some(0))).last, Nil)
  }

  test("a compaction moves rows and reads none") {
    assertEquals(
      read(append(1, "a"), compaction(2, "a", "c"), update(3, "c")),
      Seq(Nil, Nil, Seq(1L))
    )
    assertEquals(read(append(1, "a"), compaction(2, "x", "c"), update(3, "c")).last, Nil)
  }
}
