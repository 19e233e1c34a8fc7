package io.interlock.rules

import io.interlock.rules.OperationClass._

class ClaimScopeSuite extends munit.FunSuite {
  private val rowLevel = Policies.byName("row_level").get
  private val maxcompute = Policies.byName("maxcompute_delta").get
  private val one = Map("p" -> "1")

  private def claim(partitions: Map[String, String]*) = ClaimScope(Some(Mutate), partitions)

  private def commit(by: OperationClass, partitions: Map[String, String]*) = Winner(
    1,
    by,
    if (partitions.isEmpty) ChangedScope.WholeTable
    else ChangedScope.Partitions(partitions.map(Partition).toSet)
  )

  private def holds(claim: ClaimScope, commit: Winner, policy: Policy = rowLevel) =
    claim.holds(policy, commit, isBlindAppend = false)

  test("it holds commits that may make its job lose, and no others") {
    assert(holds(claim(), commit(Mutate)))
    assert(holds(claim(), commit(Overwrite)))
    assert(!holds(claim(), commit(CompactMinor)), "the job follows its rows")
    assert(!holds(claim(), Winner(1, Mutate, ChangedScope.Nothing)))
    assert(!holds(ClaimScope(Some(CompactMinor), Nil), commit(Mutate)))
  }

  test("it holds commits in its partitions only") {
    assert(holds(claim(one), commit(Mutate, one + ("q" -> "x"))))
    assert(!holds(claim(one), commit(Mutate, Map("p" -> "2"))))
    assert(holds(claim(one, Map("p" -> "2")), commit(Mutate, Map("p" -> "2"))))
    assert(holds(claim(Map("p" -> null)), commit(Mutate, Map("p" -> null))))
    assert(!holds(claim(Map("p" -> null)), commit(Mutate, one)))
    assert(holds(claim(one), commit(Mutate)), "it may have changed any partition")
  }

  test("a blind append is not held where the isolation level puts it behind the job") {
    assert(!claim().holds(rowLevel, commit(Append), isBlindAppend = true))
    assert(claim().holds(rowLevel, commit(Append), isBlindAppend = false))
    assertEquals(
      maxcompute.cell(Append, Overwrite).map(_.verdict == Verdict.Fail),
      Some(ClaimScope(Some(Overwrite), Nil).holds(maxcompute, commit(Append), isBlindAppend = true))
    )
  }

  test("a claim without a class protects jobs of all classes") {
    assert(holds(ClaimScope(None, Nil), commit(CompactMinor)))
  }

  test("claims conflict if one job may lose against the other") {
    def conflict(one: ClaimScope, other: ClaimScope) = {
      val found = one.conflictsWith(rowLevel, other)
      assertEquals(other.conflictsWith(rowLevel, one), found)
      found
    }
    assert(conflict(claim(), claim(one)))
    assert(conflict(claim(one), claim(Map("q" -> "x"))), "p=1/q=x is in both")
    assert(conflict(claim(one, Map("p" -> "2")), claim(Map("p" -> "2"))))
    assert(!conflict(claim(one), claim(Map("p" -> "2", "q" -> "x"))))
    assert(!conflict(claim(), ClaimScope(Some(CompactMinor), Nil)))
    assert(conflict(ClaimScope(None, Nil), ClaimScope(None, Nil)))
  }
}
