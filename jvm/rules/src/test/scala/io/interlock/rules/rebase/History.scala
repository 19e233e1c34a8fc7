package io.interlock.rules.rebase

import scala.collection.mutable
import scala.util.Random

import io.interlock.rules.OperationClass
import io.interlock.rules.OperationClass._

/** A job of a random history.
  *
  * @param pin
  *   the version it plans on, or the latest if there are fewer
  * @param scope
  *   the partitions it works in
  */
final case class Job(operation: OperationClass, pin: Int, scope: Set[Int], seed: Long)

/** A table and the jobs that run on it, in the order in which they try to commit.
  *
  * @param files
  *   for each file its partition, its number of rows and the dead ones among them
  */
final case class History(files: Seq[(Int, Int, Set[Int])], jobs: Seq[Job])

/** What a job does to the table: the actions of a commit, and their meaning.
  *
  * @param removes
  *   files and the vectors it removes them with
  * @param adds
  *   files and the vectors it adds them with
  * @param outputs
  *   of a compaction
  * @param kills
  *   rows which a MUTATE kills, by identity
  * @param births
  *   new rows, by identity
  * @param hops
  *   over how many compactions its changes went
  */
final case class Plan(
    job: Job,
    removes: Map[String, String],
    adds: Map[String, String],
    outputs: Seq[Output] = Nil,
    kills: Set[Int] = Set.empty,
    births: Seq[Int] = Nil,
    hops: Int = 0
) {
  def compaction: Compaction = Compaction(removes, outputs)
  def changes: Seq[FileChange] =
    removes.toSeq.map { case (path, vector) => FileChange(path, vector, adds.get(path)) }
}

/** Data files and deletion vectors by name, as on a disk: written once, never changed. A row is a
  * number that no other row has; even rows are of partition 0, odd ones of partition 1.
  */
final class Disk {
  private val files = mutable.Map.empty[String, IndexedSeq[Int]]
  private val vectors = mutable.Map.empty[String, RowSet]
  private val numbers = Iterator.from(1)

  def newRows(partition: Int, count: Int): Seq[Int] =
    Seq.fill(count)(numbers.next() * 2 + partition)

  /** @param rows
    *   at least one
    */
  def write(rows: Seq[Int]): String = {
    val path = s"f${numbers.next()}"
    files += path -> rows.toIndexedSeq
    path
  }

  def writeVector(dead: RowSet): String = if (dead.isEmpty) ""
  else {
    val token = s"v${numbers.next()}"
    vectors += token -> dead
    token
  }

  def partition(path: String): Int = rows(path).head % 2
  def rows(path: String): IndexedSeq[Int] = files(path)
  def vector(token: String): RowSet = vectors(token)

  /** A row's number is its id. */
  def rowIds(outputs: Seq[Output]): RowIds = new RowIds {
    def of(dying: Seq[Dying]) =
      Right(dying.map(file => identified(file.path)((i, _) => file.contains(i))))
    def having(ids: RowSet, sources: Seq[String]) =
      Right(outputs.map(output => identified(output.path)((_, id) => ids.contains(id))))
    private def identified(path: String)(wanted: (Long, Long) => Boolean) = {
      val found =
        rows(path).zipWithIndex.map { case (id, i) => (i.toLong, id.toLong) }.filter(wanted.tupled)
      IdentifiedRows(path, RowSet.of(found.map(_._1): _*), RowSet.of(found.map(_._2): _*))
    }
  }

  def live(path: String, token: String): Seq[Int] = {
    val dead = if (token.isEmpty) RowSet.empty else vector(token)
    rows(path).zipWithIndex.collect { case (row, i) if !dead.contains(i.toLong) => row }
  }
}

/** Plans jobs on a snapshot: its files, and the vector of each. */
final class Planner(disk: Disk) {

  def plan(job: Job, snapshot: Map[String, String]): Plan = {
    val random = new Random(job.seed)
    val files = random.shuffle(
      snapshot.filter { case (path, _) => job.scope(disk.partition(path)) }.toSeq.sorted
    )
    job.operation match {
      case Append => write(job, Map.empty)
      case Overwrite => write(job, files.toMap)
      case CompactMinor => compact(job, files.filter(_ => random.nextInt(4) > 0), random)
      case CompactMajor => compact(job, files, random)
      case _ => files.foldLeft(Plan(job, Map.empty, Map.empty))(mutate(random))
    }
  }

  private def write(job: Job, removes: Map[String, String]): Plan = {
    val births = job.scope.toSeq.map(disk.newRows(_, count = 2))
    Plan(job, removes, births.map(disk.write(_) -> "").toMap, births = births.flatten)
  }

  /** Kills no, some or all rows of a file, writes as many new ones or none, and marks the dead ones
    * or copies the live ones.
    */
  private def mutate(random: Random)(plan: Plan, file: (String, String)): Plan = {
    val (path, vector) = file
    val share = Seq(0, 3, 6, 10)(random.nextInt(4))
    val (kills, survivors) = disk.live(path, vector).partition(_ => random.nextInt(10) < share)
    if (kills.isEmpty) plan
    else {
      val births = disk.newRows(disk.partition(path), Seq(0, kills.size)(random.nextInt(2)))
      val marks = survivors.nonEmpty && random.nextBoolean()
      val written = if (marks) births else survivors ++ births
      val added = Option.when(written.nonEmpty)(disk.write(written) -> "")
      val dead = disk.rows(path).indices.filterNot(i => survivors.contains(disk.rows(path)(i)))
      val readded = Option.when(marks)(path -> disk.writeVector(RowSet.of(dead.map(_.toLong): _*)))
      plan.copy(
        removes = plan.removes + file,
        adds = plan.adds ++ readded ++ added,
        kills = plan.kills ++ kills,
        births = plan.births ++ births
      )
    }
  }

  private def compact(job: Job, files: Seq[(String, String)], random: Random): Plan = {
    val bins = files.groupBy(file => disk.partition(file._1)).toSeq.sortBy(_._1).flatMap {
      case (_, files) => files.grouped(1 + random.nextInt(4))
    }
    val outputs =
      bins.flatMap(if (random.nextInt(4) == 0) permute(_, random) else pack(_, random))
    Plan(job, files.toMap, outputs.map(_.path -> "").toMap, outputs)
  }

  /** One bin's live rows in any order, in two outputs that do not say where they come from. */
  private def permute(bin: Seq[(String, String)], random: Random): Seq[Output] = {
    val live = random.shuffle(bin.flatMap { case (path, vector) => disk.live(path, vector) })
    val (some, others) = live.splitAt(random.nextInt(live.size + 1))
    Seq(some, others).filter(_.nonEmpty)
      .map(rows => Output(disk.write(rows), rows.size.toLong, RowSet.empty, Nil))
  }

  /** One bin's live rows in order, cut into one to three outputs. */
  private def pack(bin: Seq[(String, String)], random: Random): Seq[Output] = {
    val live = bin.map { case (path, vector) => disk.live(path, vector) }
    val offsets = live.scanLeft(0)(_ + _.size)
    val cuts = Seq.fill(random.nextInt(3))(random.nextInt(offsets.last + 1))
    val bounds = (0 +: cuts :+ offsets.last).distinct.sorted
    bounds.zip(bounds.drop(1)).map { case (from, until) =>
      val segments = bin.zip(offsets.zip(offsets.drop(1))).collect {
        case ((path, vector), (start, end)) if math.max(start, from) < math.min(end, until) =>
          val first = math.max(start, from)
          val rows = math.min(end, until) - first
          Segment(path, vector, (first - start).toLong, rows.toLong, (first - from).toLong)
      }
      val output = disk.write(live.flatten.slice(from, until))
      Output(output, (until - from).toLong, RowSet.empty, segments)
    }
  }
}
