package io.interlock.spark.commits

import java.util.concurrent.ConcurrentHashMap

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator._
import io.interlock.coordinator.postgres.{PostgresSettings, PostgresStore}
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.{CoordinatorSettings, TableProperties}
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.storage._

/** The commit queues of this JVM, one for each table, and the stores behind them. */
object Coordinators {

  /** A table as a queue knows it: one that was created anew at the same path is another. */
  final private case class Key(store: CommitStore, log: Path, tableId: String)

  private val stores = new ConcurrentHashMap[CoordinatorSettings, CommitStore]
  private val queues = CacheBuilder.newBuilder().weakValues().build[Key, CommitQueue]()

  /** A queue is there as long as a log that has used it, or a transaction. */
  private val used = CacheBuilder.newBuilder().weakKeys()
    .build[DeltaLog, ConcurrentHashMap[Key, CommitQueue]]()

  /** The queue of a table, or none if its commits are Delta's own.
    *
    * @param properties
    *   the table's
    * @param tableId
    *   Delta's id of the table; empty if there is none yet
    */
  def queue(
      spark: SparkSession,
      deltaLog: DeltaLog,
      properties: Map[String, String],
      tableId: String
  ): Option[CommitQueue] =
    TableProperties.coordinatorOf(properties).map { name =>
      val store = refusing(this.store(spark, name))
      val log = TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf())
      val key = Key(store, log.path, tableId)
      val queue = queues.get(key, () => new CommitQueue(log, store))
      used.get(deltaLog, () => new ConcurrentHashMap).put(key, queue)
      queue
    }

  /** Makes sure that a table can be bound to a coordinator.
    *
    * @throws InterlockException
    *   what its commits would be refused with
    */
  def check(spark: SparkSession, deltaLog: DeltaLog, name: String): Unit = refusing(
    store(spark, name).check(TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf()))
  )

  private def store(spark: SparkSession, name: String): CommitStore =
    stores.computeIfAbsent(CoordinatorSettings.of(spark, name), open)

  private def refusing[A](work: => A): A =
    try work
    catch { case refused: CoordinatorException => throw InterlockException.ofCoordinator(refused) }

  /** How often the log of each table was to be taken as it is. */
  private val forgotten = new ConcurrentHashMap[Path, Long]

  /** Lets commits be made on top of what a log holds now, whatever this process knows of it. What
    * transactions read before is no longer the table's.
    */
  def forget(deltaLog: DeltaLog): Unit = {
    val log = TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf())
    forgotten.merge(log.path, 1L, _ + _)
    stores.values.forEach(_.forget(log))
    queues.asMap.forEach((key, queue) => if (key.log == log.path) queue.startOver())
  }

  def timesForgotten(deltaLog: DeltaLog): Long = forgotten.getOrDefault(deltaLog.logPath, 0L)

  /** Closes all stores; they are opened again where a session goes on. */
  def close(): Unit = {
    queues.invalidateAll()
    used.invalidateAll()
    stores.keySet.forEach(settings => Option(stores.remove(settings)).foreach(_.close()))
  }

  private def open(settings: CoordinatorSettings): CommitStore =
    if (settings.isFileSystem) new FileSystemStore(logStore)
    else new PostgresStore(PostgresSettings.of(settings.name, settings.values), logStore)

  /** Delta's store for the file system of a log, without Delta's wrappers. */
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
