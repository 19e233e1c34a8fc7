package io.interlock.spark.commits

import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator._
import io.interlock.coordinator.postgres.{Admin, PostgresSettings, PostgresStore}
import io.interlock.spark.errors.{InterlockException, StorageFault}
import io.interlock.spark.properties.{CoordinatorSettings, TablePolicy}
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.storage._

/** The commit queues of this JVM, one for each table, and the stores behind them. */
object Coordinators {

  /** The key of a queue. A table that was created again at the same path has another key. */
  final private case class Key(store: CommitStore, log: Path, tableId: String)

  private val stores = new ConcurrentHashMap[CoordinatorSettings, CommitStore]
  private val queues = CacheBuilder.newBuilder().weakValues().build[Key, CommitQueue]()

  /** A queue is kept as long as the log that has used it last, or a transaction. */
  private val used = CacheBuilder.newBuilder().weakKeys()
    .build[DeltaLog, ConcurrentHashMap[CommitStore, CommitQueue]]()

  /** The queue of a table; none if Delta commits to it by itself.
    *
    * @param tableId
    *   Delta's id of the table; empty if there is none yet
    */
  def queue(
      spark: SparkSession,
      deltaLog: DeltaLog,
      properties: Map[String, String],
      tableId: String
  ): Option[CommitQueue] =
    TablePolicy.coordinatorOf(properties).map { name =>
      val store = refusing(this.store(spark, name))
      val key = Key(store, deltaLog.logPath, tableId)
      def log = TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf())
      val queue = queues.get(key, () => new CommitQueue(log, store))
      used.get(deltaLog, () => new ConcurrentHashMap).put(store, queue)
      queue
    }

  /** Checks that a table can be bound to a coordinator.
    *
    * @throws InterlockException
    *   the error with which its commits would be refused
    */
  def check(spark: SparkSession, deltaLog: DeltaLog, table: String, name: String): Unit =
    try
      refusing(
        store(spark, name).check(TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf()))
      )
    catch {
      case failed @ StorageFault(reason) =>
        throw InterlockException.storageFailed(table, Binding, reason, left = 0, failed)
    }

  /** The statements that bind a table. */
  private val Binding = "CREATE TABLE or ALTER TABLE"

  /** Lets writers race for files in a folder, in the way that the default coordinator commits there.
    *
    * @return
    *   the result, and whether it could be kept for other processes, if they need it
    */
  def trial(spark: SparkSession, folder: Path): (StoreTrial, Try[Unit]) = {
    val log = TableLog(folder, spark.sessionState.newHadoopConf())
    val trial = StoreTrial.run(log, logStore(log))
    def isNeeded = trial.raced && StoreTrial.isNeeded(log.conf, folder)
    (trial, Try(if (isNeeded) StoreTrial.keep(trial, log.conf, folder)))
  }

  /** See `Admin.repair`; the table's log is read and written as by the commits of `spark`. */
  def repair(spark: SparkSession, options: java.util.Map[String, String]): String =
    Admin.repair(options, spark.sessionState.newHadoopConf(), logStore)

  private def store(spark: SparkSession, name: String): CommitStore =
    stores.computeIfAbsent(CoordinatorSettings.of(spark, name), open)

  private def refusing[A](work: => A): A =
    try work
    catch { case refused: CoordinatorException => throw InterlockException.ofCoordinator(refused) }

  /** Closes all stores; they are opened again if a session still commits. */
  def close(): Unit = {
    queues.invalidateAll()
    used.invalidateAll()
    stores.keySet.forEach(settings => Option(stores.remove(settings)).foreach(_.close()))
  }

  private def open(settings: CoordinatorSettings): CommitStore =
    if (settings.isFileSystem) new FileSystemStore(logStore)
    else new PostgresStore(PostgresSettings.of(settings.name, settings.values), logStore)

  /** Delta's LogStore for the file system of a log, without Delta's wrappers. */
  private def logStore(log: TableLog): io.delta.storage.LogStore = {
    val store = LogStore(SparkEnv.get.conf, log.conf) match {
      case delegating: DelegatingLogStore => delegating.getDelegate(log.path)
      case direct => direct
    }
    store match {
      case adaptor: LogStoreAdaptor => adaptor.logStoreImpl
      case own => LogStoreInverseAdaptor(own, log.conf)
    }
  }
}
