package io.interlock.spark.statements

import scala.util.{Failure, Try}

import io.interlock.rules._
import io.interlock.spark.errors.{Conflicts, InterlockConflict}

class RerunSuite extends munit.FunSuite {

  private def lost(
      winner: Long,
      kind: ConflictKind.Raised = ConflictKind.ConcurrentAppend,
      read: Option[Long] = None
  ) =
    Conflicts.raised(
      Conflict(
        kind,
        policy = "row_level",
        operation = "UPDATE",
        operationClass = OperationClass.Mutate,
        readVersion = read.getOrElse(winner - 1),
        table = "t",
        txnId = "",
        winner = Some(WinningCommit(winner, Some("UPDATE"), Some(OperationClass.Mutate))),
        why = "version 5 changed a row",
        rule = Some("MUTATE -> MUTATE"),
        verdict = Some(Verdict.ByRows),
        ruling = Some("MUTATE fails after MUTATE"),
        scope = Some(Conflict.WholeTable)
      ),
      Policies.all
    )

  /** Runs that end in turn as given; the result, and how many there were. */
  private def runs(most: Int, ends: Try[String]*): (Try[String], Int) = {
    var done = 0
    val result = Try(Rerun(Runs(most, () => true)) { number =>
      done += 1
      assertEquals(number, done)
      ends(number - 1).get
    })
    (result, done)
  }

  test("it runs until it wins") {
    val ends = Seq(Failure(lost(5)), Failure(lost(7)), Try("made"), Try("again"))
    assertEquals(runs(9, ends: _*), (Try("made"), 3))
  }

  test("the error of the last run names the winners of all") {
    val (result, done) = runs(3, Seq(5L, 7L, 9L).map(winner => Failure(lost(winner))): _*)
    assertEquals(done, 3)
    result match {
      case Failure(last: InterlockConflict) =>
        assertEquals(last.conflict.lostTo, "version 9")
        val runs = "this was run 3, those before it lost against version 5, version 7"
        assert(last.getMessage.contains(s"changed a row; $runs"), last.getMessage)
      case other => fail(s"$other")
    }
  }

  test("a run that has read the same version again is the last one") {
    val (result, done) = runs(9, Seq(5L, 7L).map(n => Failure(lost(n, read = Some(4)))): _*)
    assertEquals(done, 2)
    assert(result.failed.get.getMessage.contains("this was run 2"))
  }

  test("the error of a single run says nothing of runs") {
    val (result, _) = runs(1, Failure(lost(5)))
    assert(!result.failed.get.getMessage.contains("this was run"))
  }

  test("what a new run cannot heal is not run again") {
    val others = Seq(
      lost(5, ConflictKind.ConcurrentWrite),
      lost(5, ConflictKind.MetadataChanged),
      new IllegalStateException("committed?")
    )
    for (error <- others) {
      val (result, done) = runs(3, Failure(error))
      assertEquals((result.failed.get, done), (error, 1))
    }
  }

  test("a statement that replaces its table runs again after any commit") {
    for (kind <- Seq(ConflictKind.ConcurrentWrite, ConflictKind.MetadataChanged)) {
      val ends = Iterator(Failure(lost(5, kind)), Try("made"))
      val made = Rerun(Runs(3, () => true, replaceTable = true))(_ => ends.next().get)
      assertEquals(made, "made")
    }
  }
}
