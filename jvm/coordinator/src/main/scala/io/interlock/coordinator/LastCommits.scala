package io.interlock.coordinator

import scala.util.Try

import org.apache.hadoop.fs.{EtagSource, FileStatus, Path}

/** The last commit that this process made to each table. Commits of Interlock do not replace each
  * other, but a writer without Interlock may replace one on a local disk and on S3, and everywhere
  * the log may be put back. So the file is checked before the next commit.
  */
final private[coordinator] class LastCommits {
  private val commits = RecentlyUsed.map[Path, LastCommit]()

  /** The commits that stop the writes to a table, by the table's id. */
  private val stops = RecentlyUsed.map[Path, Map[String, LastCommit]]()

  /** Remembers a commit, unless a later one of the same table is known. It was not stopped, so what
    * did stop commits is in its place again, or was of another table.
    */
  def remember(log: TableLog, made: LastCommit): Unit = {
    stops.remove(log.path)
    commits.merge(log.path, made, (known, made) => if (known.isLaterThan(made)) known else made)
    ()
  }

  /** Lets no commit be made any more, since this one has been replaced and others of its batch may
    * be behind it. Which of them are there is not known, so the stop is for each id that they may
    * have given the table.
    */
  def stopAt(log: TableLog, replaced: LastCommit, batch: Seq[CommitRequest]): Unit = {
    val ids = batch.flatMap(request => Seq(request.tableId, request.newTableId)).filter(_.nonEmpty)
    val _ = stops.put(log.path, ids.map(id => id -> replaced.copy(tableId = id)).toMap)
  }

  /** The last commit, or the one that stops the writes, if it was made to the table that the request
    * is for.
    */
  def of(log: TableLog, request: CommitRequest): Option[LastCommit] =
    Option(stops.get(log.path)).flatMap(_.get(request.tableId))
      .orElse(Option(commits.get(log.path)).filter(_.tableId == request.tableId))
}

/** @param tableId
  *   Delta's id of the table after the commit
  */
final private[coordinator] case class LastCommit(
    version: Long,
    txnId: String,
    tableId: String,
    file: FileStatus
) {
  def isLaterThan(other: LastCommit): Boolean =
    tableId == other.tableId && version > other.version

  /** Checks that the commit is still in its place. Log clean-up removes old commits, but never the
    * newest one.
    *
    * @param next
    *   the version of the next commit
    * @throws CoordinatorException
    *   if another commit is in the place of this one
    */
  def requireKept(log: TableLog, next: Long): Unit = {
    val folder = LogFolder.of(log)
    lazy val theirs = inItsPlace(folder)
    folder.status(LogFolder.commitName(version)) match {
      case Some(found) if isSame(found) =>
      case None if next > version + 1 =>
      case _ => if (theirs != txnId) throw overwritten(log, theirs)
    }
  }

  /** Whether the commit's own file is at its version, by one look. */
  def isKept(log: TableLog): Boolean =
    LogFolder.of(log).status(LogFolder.commitName(version)).exists(isSame)

  private def isSame(found: FileStatus): Boolean = (found, file) match {
    case (found: LocalStatus, own: LocalStatus) => found.sameFile(own)
    case (found: EtagSource, own: EtagSource) => Option(found.getEtag).contains(own.getEtag)
    case _ => found.getModificationTime == file.getModificationTime && found.getLen == file.getLen
  }

  /** The error for a commit in whose place another one is. */
  def overwritten(log: TableLog): CoordinatorException =
    overwritten(log, Try(inItsPlace(LogFolder.of(log))).getOrElse("an unreadable commit"))

  private def inItsPlace(folder: LogFolder): String =
    folder.firstLine(version).fold("no commit")(line =>
      CommitLines.txnIdOf(line).getOrElse("a commit without an id")
    )

  private def overwritten(log: TableLog, theirs: String) = new CoordinatorException(
    "INTERLOCK_COMMIT_OVERWRITTEN",
    Map(
      "path" -> log.path.toString,
      "version" -> version.toString,
      "ours" -> txnId,
      "theirs" -> theirs
    )
  )
}

private[coordinator] object LastCommit {
  def of(request: CommitRequest, version: Long, file: FileStatus): LastCommit =
    LastCommit(version, request.txnId, request.newTableId, file)
}
