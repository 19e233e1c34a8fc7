package io.interlock.spark

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.spark.sql.delta.{
  NoOpTransactionExecutionObserver,
  OptimisticTransaction,
  TransactionExecutionObserver
}

/** Holds the first transaction of a thread between "data written" and "commit" until it is opened.
  *
  * The lab, the demo and the tests force commit orders with it: start the later job on a thread of
  * its own behind a gate, wait until it has arrived, run the earlier job to its end, open the gate,
  * whatever became of that. There is no deadline: nobody knows how long a job takes elsewhere.
  */
final class PhaseGate extends TransactionExecutionObserver {
  private val arrived = new CountDownLatch(1)
  private val opened = new CountDownLatch(1)
  private val held = new AtomicBoolean(false)

  /** Puts the gate on the calling thread. */
  def install(): Unit = TransactionExecutionObserver.setObserver(this)

  /** Takes whatever observer the calling thread has off it. */
  def uninstall(): Unit =
    TransactionExecutionObserver.setObserver(NoOpTransactionExecutionObserver)

  /** Whether a transaction stands before its commit, waiting up to `millis` milliseconds for it. */
  def awaitArrival(millis: Long): Boolean = arrived.await(millis, TimeUnit.MILLISECONDS)

  /** Lets the held transaction go on. */
  def open(): Unit = opened.countDown()

  override def preparingCommit[T](f: => T): T = {
    if (held.compareAndSet(false, true)) {
      arrived.countDown()
      opened.await()
    }
    f
  }

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = f
  override def createChild(): TransactionExecutionObserver = this
  override def beginDoCommit(): Unit = ()
  override def beginBackfill(): Unit = ()
  override def beginPostCommit(): Unit = ()
  override def transactionCommitted(): Unit = ()
  override def transactionAborted(): Unit = ()
}
