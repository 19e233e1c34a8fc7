package org.apache.spark.sql.delta.interlock.transaction

import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

/** The transactions of this JVM that may still commit. A transaction that is given up without a
  * commit is removed by the garbage collector.
  */
object RunningTransactions {
  private val since =
    Collections.synchronizedMap(new WeakHashMap[InterlockTransaction, Long])
  private val running = since.asScala

  def start(transaction: InterlockTransaction): Unit =
    running += transaction -> System.currentTimeMillis()

  def end(transaction: InterlockTransaction): Unit = running -= transaction

  /** How long the longest transaction on a table has been running, in milliseconds; none if none is
    * running.
    *
    * @param tableId
    *   the id in the table's metadata
    */
  def longestMillis(tableId: String): Option[Long] = since.synchronized {
    val now = System.currentTimeMillis()
    running.collect {
      case (transaction, start) if transaction.snapshot.metadata.id == tableId => now - start
    }.maxOption
  }
}
