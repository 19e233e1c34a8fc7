package io.interlock.rules

import io.interlock.rules.OperationClass._

class FootprintSuite extends munit.FunSuite {
  private val byClasses = Policies.byName("maxcompute_delta").get
  private val byReads = Policies.byName("row_level").get
  private val (p1, p2, p3) = (partition("1"), partition("2"), partition("3"))
  private val pNull = partition(null)
  private val all = Seq(p1, p2, p3, pNull)

  private def partition(value: String) = Partition(Map("p" -> value))

  /** The partitions that each attempt of a commit covers which adds files to p = 1, NULL and removes
    * some from p = 2.
    */
  private def covered(
      operation: OperationClass,
      policy: Policy = byClasses,
      partitioned: Boolean = true,
      unknown: Option[Partition] = Some(p2),
      replaces: Replaces = Replaces.Everything,
      readsWholeTable: Boolean = false,
      reads: Seq[Partition => Boolean] = Nil
  ): Seq[(OperationClass, Seq[Partition])] = {
    val touched = new TouchedPartitions(Set(Some(p1), Some(pNull)), Set(unknown))
    new Footprint(partitioned, touched, replaces, readsWholeTable, reads)
      .attempts(policy, operation)
      .map(attempt => attempt.operationClass -> all.filter(attempt.scope.covers))
  }

  private val written = Seq(p1, p2, pNull)
  private val reads3 = Seq[Partition => Boolean](_ == p3)
  private val only2 = Replaces.Selected(_ == p2)

  test("an APPEND covers what it writes, and what it reads where the policy judges that") {
    assertEquals(covered(Append, reads = reads3), Seq(Append -> written))
    assertEquals(covered(Append, byReads, reads = reads3), Seq(Append -> all))
  }

  test("a MUTATE covers what it writes and what it selects") {
    assertEquals(covered(Mutate), Seq(Mutate -> written))
    assertEquals(covered(Mutate, reads = reads3), Seq(Mutate -> all))
    assertEquals(covered(Mutate, readsWholeTable = true), Seq(Mutate -> all))
  }

  test("an OVERWRITE covers what it replaces, and its other rows are an APPEND") {
    assertEquals(covered(Overwrite), Seq(Overwrite -> all))
    assertEquals(
      covered(Overwrite, replaces = only2),
      Seq(Overwrite -> Seq(p2), Append -> Seq(p1, pNull))
    )
    assertEquals(covered(Overwrite, replaces = Replaces.Written(true)), Seq(Overwrite -> written))
    assertEquals(
      covered(Overwrite, replaces = Replaces.Written(false)),
      Seq(Overwrite -> Seq(p1, p2), Append -> Seq(pNull))
    )
  }

  test("an OVERWRITE under a policy that judges reads covers what it writes and replaces") {
    val replaces = Replaces.Selected(_ == p3)
    assertEquals(covered(Overwrite, byReads, replaces = replaces).head, Overwrite -> all)
    assertEquals(covered(Overwrite, byReads, replaces = only2).head, Overwrite -> written)
  }

  test("all is covered where there are no partitions, or the log does not tell one") {
    for (policy <- Seq(byClasses, byReads)) {
      assertEquals(covered(Append, policy, partitioned = false), Seq(Append -> all))
      assertEquals(covered(Append, policy, unknown = None), Seq(Append -> all))
    }
  }

  test("rows of a blind append count under Serializable, or before a change of metadata") {
    for (changesMetadata <- Seq(false, true); isBlindAppend <- Seq(false, true)) {
      def counts(level: String) = Isolation.countsAdded(level, isBlindAppend, changesMetadata)
      assert(counts("Serializable"))
      assertEquals(counts("WriteSerializable"), changesMetadata || !isBlindAppend)
      assert(!counts("SnapshotIsolation"))
    }
  }
}
