package io.interlock.coordinator

import java.io.{ByteArrayInputStream, FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Path => LocalPath}
import java.util.{HexFormat, UUID}

import scala.util.Try

import io.delta.storage.LogStore
import org.apache.hadoop.fs.Path

/** What a version without actions says that reserves the next one for a part of an atomic block. Until
  * the block is decided nobody may make that one; then the content becomes it, or it is free.
  *
  * @param home
  *   the log beside which the decision is; none for this log
  * @param homeVersion
  *   the version by which that log takes part
  * @param id
  *   of the try to commit the block
  * @param content
  *   of the next version, in this log
  */
final private[coordinator] case class Prepared(
    home: Option[Path],
    homeVersion: Long,
    id: String,
    content: StagedFile
) {
  import Prepared._

  /** The request for the version that reserves the one of another request.
    *
    * @param firstLine
    *   of that one's content
    */
  def before(reserved: CommitRequest, firstLine: String): CommitRequest = {
    val hash = HexFormat.of().formatHex(content.sha256)
    val place = home.fold(Here)(_.toString)
    val text = Seq(id, content.name, content.size.toString, hash, homeVersion.toString, place)
      .mkString(" ")
    val txnId = id + Suffix // of this try, as a store knows a transaction that it has committed
    reserved.copy(
      version = reserved.version - 1,
      txnId = txnId,
      newTableId = reserved.tableId,
      lines = Iterator.single(CommitLines.preparing(firstLine, txnId, text)),
      whenSeen = () => ()
    )
  }
}

private[coordinator] object Prepared {
  private val Suffix = ".prepared"
  private val Here = "."

  /** What the version with this first line reserves; none if it is no such version. */
  def of(firstLine: String): Option[Prepared] =
    CommitLines.preparedOf(firstLine).map(_.split(" ", 6)).collect {
      case Array(id, name, size, hash, homeVersion, home) =>
        val content = StagedFile(name, size.toLong, HexFormat.of().parseHex(hash))
        val elsewhere = Option.when(home != Here)(new Path(home))
        Prepared(elsewhere, homeVersion.toLong, id, content)
    }

  /** Whether a transaction is that of such a version. */
  def isOf(txnId: String): Boolean = txnId.endsWith(Suffix)
}

/** Whether an atomic block is committed: a file beside the log of one of its tables, which is made
  * once, and never replaced.
  */
final private[coordinator] class Decision(home: TableLog, id: String, logStore: => LogStore) {
  import Decision._

  private val interlock = new Path(home.path, "_interlock")
  private val log = home.copy(path = new Path(interlock, "blocks"))
  private val folder = LogFolder.of(log)

  /** None if it is undecided. */
  def read(): Option[Boolean] =
    try
      folder.status(id).map(file => LogFolder.reading(folder.open(file))(_.readLine()) == Committed)
    catch { case _: FileNotFoundException | _: NoSuchFileException => None } // just forgotten

  /** Decides, unless that is done.
    *
    * @return
    *   what is decided
    * @throws PublishUnknown
    *   if it is not known whether it was decided
    * @throws IOException
    *   if it was not, and cannot be by this call any more
    */
  def decide(isCommitted: Boolean): Boolean =
    decide(if (isCommitted) Committed else Aborted, MostTries)

  private def decide(text: String, tries: Int): Boolean =
    try {
      if (LogFolder.isLocal(log)) link(text) else create(text)
      text == Committed
    } catch {
      case unknown: PublishUnknown => throw unknown
      case gone: FileNotFoundException => throw gone
      case gone: NoSuchFileException => throw gone
      case failed: IOException =>
        val found = Try(read())
        if (found.toOption.flatten.nonEmpty) found.get.get
        else if (tries > 1) decide(text, tries - 1)
        else throw new PublishUnknown(new Path(log.path, id), failed)
    }

  /** Never creates the log's folder, so that a table that was dropped does not reappear. */
  private def link(text: String): Unit = {
    val local = new LocalFolder(log)
    Seq(home.path -> interlock, interlock -> log.path).foreach { case (parent, path) =>
      if (!Files.isDirectory(LocalPath.of(path.toUri.getPath))) {
        QuickLocalFileSystem.makeFolder(LocalPath.of(path.toUri.getPath), log.conf)
        new LocalFolder(home.copy(path = parent)).sync()
      }
    }
    val draft = s".$id.${UUID.randomUUID()}.tmp"
    try {
      local.write(draft, Iterator.single(text.getBytes(UTF_8)))
      local.link(draft, id)
      try local.sync()
      catch { case e: IOException => throw new PublishUnknown(new Path(log.path, id), e) }
    } finally Try(local.delete(draft)): Unit
  }

  private def create(text: String): Unit = {
    val fs = home.path.getFileSystem(home.conf)
    if (!fs.exists(home.path)) throw new FileNotFoundException(home.path.toString)
    fs.mkdirs(log.path): Unit
    val file = new Path(log.path, id)
    if (folder.status(id).nonEmpty) throw new FileAlreadyExistsException(file.toString)
    FileCreation.of(home, logStore).create(file, new ByteArrayInputStream(text.getBytes(UTF_8)))
  }

  /** To be called when all tables have their parts of the block. */
  def forget(): Unit = Try(folder.delete(id)): Unit
}

private object Decision {
  private val Committed = "committed"
  private val Aborted = "aborted"
  private val MostTries = 4
}
