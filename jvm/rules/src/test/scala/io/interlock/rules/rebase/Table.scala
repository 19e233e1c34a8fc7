package io.interlock.rules.rebase

import scala.collection.mutable

import io.interlock.rules._

/** A table that commits plans under a policy as Interlock does, checks each commit, and knows what
  * it should contain.
  *
  * @param seen
  *   is told each verdict and what came of it
  */
final class Table(history: History, policy: Policy, seen: String => Unit) {
  private val disk = new Disk
  private def rebases(of: Plan) = new Rebases(disk.vector, disk.rowIds(of.outputs))

  private val first = history.files.map { case (partition, size, dead) =>
    val path = disk.write(disk.newRows(partition, size))
    path -> disk.writeVector(RowSet.of(dead.filter(_ < size).map(_.toLong).toSeq: _*))
  }.toMap
  private val snapshots = mutable.Buffer(first)
  private val commits = mutable.Buffer.empty[Plan]

  /** Runs all jobs of the history. */
  def run(): Unit = history.jobs.foreach { job =>
    val read = math.min(job.pin, commits.size)
    val plan = new Planner(disk).plan(job, snapshots(read))
    val judged = commits.drop(read).foldLeft(Option(plan))((plan, winner) =>
      plan.flatMap(judge(_, winner))
    )
    judged.foreach { plan =>
      if (plan.hops > 1) seen("two hops")
      check(plan)
      snapshots += snapshots.last -- plan.removes.keys ++ plan.adds
      commits += plan
    }
  }

  /** The live rows, in ascending order. */
  def rows: Seq[Int] = rowsOf(snapshots.last.toSeq)

  /** The live rows after a serial replay of what was committed, in ascending order. */
  def replayed: Seq[Int] = commits.foldLeft(rowsOf(first.toSeq)) { (rows, plan) =>
    val overwrites = plan.job.operation == OperationClass.Overwrite
    val kept = rows.filterNot(row => plan.kills(row) || overwrites && plan.job.scope(row % 2))
    kept ++ plan.births
  }.sorted

  private def rowsOf(files: Seq[(String, String)]): Seq[Int] =
    files.flatMap { case (path, vector) => disk.live(path, vector) }.sorted

  private def partitions(scope: Set[Int]): Set[Partition] =
    scope.map(partition => Partition(Map("p" -> partition.toString)))

  private def judge(plan: Plan, winner: Plan): Option[Plan] = {
    val changed = (winner.removes.keySet ++ winner.adds.keySet).map(disk.partition)
    val ruling = Judge.judge(
      policy,
      Winner(
        version = 1,
        winner.job.operation,
        ChangedScope.of(partitioned = true, partitions(changed).map(Option(_)))
      ),
      Attempt(plan.job.operation, AttemptScope.Partitions(partitions(plan.job.scope), Nil))
    )
    seen(ruling.verdict.name)
    ruling.verdict match {
      case Verdict.AsIs => Some(plan)
      case Verdict.ReplaceLive =>
        Some(plan.copy(removes =
          snapshots.last.filter { case (path, _) => plan.job.scope(disk.partition(path)) }
        ))
      case Verdict.RemapRows => proved(rebases(winner).remapRows(plan.changes, winner.compaction))(
          remap(plan, winner, _)
        )
      case Verdict.RebaseCompaction =>
        proved(rebases(plan).rebaseCompaction(plan.compaction, winner.changes))(compact(plan, _))
      case Verdict.Supersede =>
        proved(rebases(plan).supersede(plan.compaction, winner.compaction, winner.adds))(compact(
          plan,
          _
        ))
      case _ => None
    }
  }

  private def proved[A](rebased: Either[String, A])(plan: A => Plan): Option[Plan] = {
    rebased.left.foreach(reason => seen(s"unproved: ${reason.replaceAll("f\\d+", "f")}"))
    rebased.toOption.map(plan)
  }

  private def remap(plan: Plan, winner: Plan, remapped: Remapped): Plan = {
    if (
      remapped.dead.keys.exists(path =>
        winner.outputs.exists(o => o.path == path && o.segments.isEmpty)
      )
    )
      seen("by id")
    val rows = winner.outputs.map(output => output.path -> output.rows).toMap
    val marked = remapped.dead.collect {
      case (path, dead) if dead.size < rows(path) => path -> disk.writeVector(dead)
    }
    plan.copy(
      removes = plan.removes -- remapped.replaced ++
        remapped.dead.keys.map(path => path -> winner.adds(path)),
      adds = plan.adds -- remapped.replaced ++ marked,
      hops = plan.hops + Seq(remapped.dead).count(_.nonEmpty)
    )
  }

  private def compact(plan: Plan, rebased: Compaction): Plan = {
    val outputs = rebased.outputs.filter(output => output.dead.size < output.rows)
    val adds = outputs.map(output => output.path -> disk.writeVector(output.dead)).toMap
    plan.copy(removes = rebased.inputs, adds = adds, outputs = outputs)
  }

  private def check(plan: Plan): Unit = {
    val live = snapshots.last
    plan.removes.foreach { case (path, vector) =>
      assert(live.get(path).contains(vector), s"$path is removed with '$vector': $plan on $live")
    }
    plan.adds.foreach { case (path, vector) =>
      assert(plan.removes.contains(path) || !live.contains(path), s"$path is there: $plan on $live")
      assert(disk.live(path, vector).nonEmpty, s"$path has no live row: $plan")
    }
    if (OperationClass.compactions(plan.job.operation)) {
      assert(rowsOf(plan.removes.toSeq) == rowsOf(plan.adds.toSeq), s"rows differ: $plan")
      plan.outputs.foreach(checkLineage)
    }
  }

  /** Each segment names the rows that stand in the output, in their order. */
  private def checkLineage(output: Output): Unit = output.segments.foreach { segment =>
    def slice(rows: Seq[Int], from: Long) = rows.slice(from.toInt, (from + segment.rows).toInt)
    val source = slice(disk.live(segment.source, segment.vector), segment.start)
    val target = slice(disk.rows(output.path), segment.target)
    assert(source.size == segment.rows && source == target, s"$segment of $output")
  }
}
