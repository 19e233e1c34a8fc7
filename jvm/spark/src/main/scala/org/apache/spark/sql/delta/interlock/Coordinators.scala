package org.apache.spark.sql.delta.interlock

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator._
import io.interlock.coordinator.postgres.{PostgresSettings, PostgresStore}
import io.interlock.spark.{CoordinatorSettings, TableProperties}
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.storage._

/** The commit queues of this JVM, one for each table, and the stores behind them. */
private[interlock] object Coordinators {

  /** A table as a queue knows it: one that was created anew at the same path is another. */
  final private case class Key(store: CommitStore, log: Path, tableId: String)

  private val stores = new ConcurrentHashMap[CoordinatorSettings, CommitStore]
  private val queues = CacheBuilder.newBuilder()
    .maximumSize(1000)
    .expireAfterAccess(1, TimeUnit.HOURS)
    .build[Key, CommitQueue]()

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
      val settings = CoordinatorSettings.of(spark, name)
      val store = stores.computeIfAbsent(settings, open)
      val log = TableLog(deltaLog.logPath, deltaLog.newDeltaHadoopConf())
      queues.get(Key(store, log.path, tableId), () => new CommitQueue(log, store))
    }

  /** Closes all stores; they are opened again where a session goes on. */
  def close(): Unit = {
    queues.invalidateAll()
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
