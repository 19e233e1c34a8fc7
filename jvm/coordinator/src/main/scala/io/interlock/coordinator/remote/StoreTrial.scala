package io.interlock.coordinator

import java.io.{ByteArrayInputStream, FileNotFoundException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.AccessDeniedException
import java.time.Instant
import java.util.concurrent.{Callable, CyclicBarrier, Executors}
import java.util.{Properties, UUID}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try, Using}

import io.delta.storage.LogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException

/** What many writers that make one file at the same moment have shown of a storage. A server that
  * looks for the file first and writes it later obeys one request after the other, and fails here.
  *
  * @param passed
  *   whether in each race one writer was told that it had made the file, and the file was its own
  * @param raced
  *   whether there were races; else the client cannot make files so, which says nothing of the storage
  */
final private[interlock] case class StoreTrial(
    at: Instant,
    passed: Boolean,
    found: String,
    raced: Boolean = true
)

private[interlock] object StoreTrial {
  val Races = 100
  val Writers = 32

  /** In the root of a bucket or file system: the server is the same for all its folders. */
  private val KeptAt = new Path("/_interlock_store.properties")

  /** Tries the way in which commits to a log would be made, in a folder that it removes.
    *
    * @throws IOException
    *   if nobody can make a file there
    */
  def run(log: TableLog, logStore: LogStore): StoreTrial = FileCreation.of(log, logStore) match {
    case creation: LogStoreCreation if creation.missing.nonEmpty =>
      StoreTrial(Instant.now(), passed = false, creation.missing.get, raced = false)
    case creation =>
      val trial = run(log, creation, Races, Writers)
      if (trial.passed) FileCreation.hasPassed(log)
      trial
  }

  private[coordinator] def run(
      log: TableLog,
      creation: FileCreation,
      races: Int,
      writers: Int
  ): StoreTrial = {
    val folder = new Path(log.path, s".race.${UUID.randomUUID()}")
    val fs = folder.getFileSystem(log.conf)
    val pool = Executors.newFixedThreadPool(writers)
    val start = new CyclicBarrier(writers)

    def race(number: Int): Option[String] = {
      val file = new Path(folder, s"$number.json")
      def write(writer: Int): Callable[Try[Unit]] = { () =>
        start.await()
        Try(creation.create(file, new ByteArrayInputStream(text(writer).getBytes(UTF_8))))
      }
      val told = pool.invokeAll((0 until writers).map(write).asJava).asScala.map(_.get).toVector
      val winners = told.indices.filter(told(_).isSuccess)
      if (winners.size > 1) Some("more than one winner")
      else {
        val kept = Try(LogFolder.reading(fs.open(file))(_.readLine()))
        winners.headOption match {
          case Some(winner) => Option.when(kept.get != text(winner))("a file of another writer")
          case None if kept.isSuccess => None // the reply to the winner was lost
          case None => throw told.collectFirst { case Failure(e) => e }.get
        }
      }
    }

    try {
      fs.mkdirs(folder)
      val faults = (0 until races).flatMap(race)
      val found = faults.headOption match {
        case None => s"each of $races races of $writers writers had one winner"
        case Some(fault) => s"${faults.size} of $races races of $writers writers had $fault"
      }
      StoreTrial(Instant.now(), faults.isEmpty, found)
    } finally {
      pool.shutdownNow()
      Try(fs.delete(folder, true)): Unit
    }
  }

  private def text(writer: Int) = s"writer $writer"

  /** Whether only a trial can show that a storage makes no file twice. */
  def isNeeded(conf: Configuration, path: Path): Boolean =
    !QuickLocalFileSystem.isLocal(path) && FileCreation.homeOf(conf, path).getScheme != "hdfs"

  /** Keeps a result for all processes that use the same bucket or file system. */
  def keep(trial: StoreTrial, conf: Configuration, path: Path): Unit = {
    val text = new Properties
    text.setProperty("at", trial.at.toString)
    text.setProperty("passed", trial.passed.toString)
    text.setProperty("found", trial.found)
    Using.resource(fileSystem(conf, path).create(KeptAt, true)) {
      text.store(_, "interlock doctor")
    }
  }

  /** The last result that was kept; none if there is none, or it is hidden from this user.
    *
    * @throws IOException
    *   if the storage does not answer
    */
  def kept(conf: Configuration, path: Path): Option[StoreTrial] = {
    val text = new Properties
    Try(Using.resource(fileSystem(conf, path).open(KeptAt))(text.load(_))) match {
      case Failure(_: FileNotFoundException | _: AccessDeniedException) => None
      case Failure(_: AccessControlException | _: IllegalArgumentException) => None
      case Failure(other) => throw other
      case Success(()) =>
        Try(StoreTrial(
          Instant.parse(text.getProperty("at")),
          text.getProperty("passed").toBoolean,
          text.getProperty("found")
        )).toOption
    }
  }

  private def fileSystem(conf: Configuration, path: Path) =
    new Path(FileCreation.homeOf(conf, path)).getFileSystem(conf)
}
