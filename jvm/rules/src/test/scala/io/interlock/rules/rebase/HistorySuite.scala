package io.interlock.rules.rebase

import scala.collection.mutable

import io.interlock.rules.OperationClass._
import io.interlock.rules.{Policies, Verdict}
import org.scalacheck.Prop.forAll
import org.scalacheck.{Gen, Shrink}

/** Random histories: what was committed equals the serial replay of the jobs that succeeded. */
class HistorySuite extends munit.ScalaCheckSuite {
  override def scalaCheckTestParameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(5000)

  private val policy = Policies.byName("maxcompute_delta").get
  private val seen = mutable.Map.empty[String, Int].withDefaultValue(0)

  private val scopes = Gen.frequency(3 -> Set(0, 1), 2 -> Set(0), 1 -> Set(1))

  private val jobs = for {
    operation <- Gen.frequency(
      4 -> Mutate,
      4 -> CompactMinor,
      3 -> CompactMajor,
      1 -> Append,
      1 -> Overwrite
    )
    pin <- Gen.frequency(4 -> 0, 1 -> 1, 1 -> 2, 1 -> 3)
    scope <- scopes
    seed <- Gen.long
  } yield Job(operation, pin, scope, seed)

  private val files = for {
    partition <- Gen.oneOf(0, 0, 1)
    size <- Gen.choose(1, 12)
    dead <- Gen.frequency(1 -> Gen.const(Nil), 2 -> Gen.someOf(0 to 11))
  } yield (partition, size, dead.toSet)

  private val histories = for {
    fileCount <- Gen.choose(1, 7)
    jobCount <- Gen.choose(2, 5)
    files <- Gen.listOfN(fileCount, files)
    jobs <- Gen.listOfN(jobCount, jobs)
  } yield History(files, jobs)

  /** Fewer jobs, then fewer files. */
  implicit private val shrink: Shrink[History] = Shrink.withLazyList { history =>
    def without[A](all: Seq[A]) = all.indices.to(LazyList).map(i => all.patch(i, Nil, 1))
    without(history.jobs).map(jobs => history.copy(jobs = jobs)) ++
      without(history.files).map(files => history.copy(files = files))
  }

  property("the table equals the serial replay of the jobs that succeeded") {
    forAll(histories) { history =>
      val table = new Table(history, policy, what => seen(what) += 1)
      table.run()
      assertEquals(table.rows, table.replayed)
    }
  }

  test(
    "the histories meet every verdict, hop twice, follow rows by id, and only rows that were permuted stop a SUPERSEDE"
  ) {
    println(seen.toSeq.sorted.map { case (what, count) => s"$what $count" }.mkString(", "))
    val wanted = policy.cells.map(_.verdict.name) :+ "two hops"
    assertEquals(wanted.filter(seen(_) == 0), Nil)
    val unproved = seen.keys.filter(_.startsWith("unproved")).toSeq
    assertEquals(unproved.filterNot(_.startsWith("unproved: a compaction has moved rows")), Nil)
    assert(seen("by id") > 0)
    assert(seen(Verdict.Supersede.name) > 0)
  }
}
