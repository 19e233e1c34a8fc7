package io.interlock.spark

import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{CancellationException, CountDownLatch, TimeUnit}

import org.apache.spark.sql.delta.{
  NoOpTransactionExecutionObserver,
  OptimisticTransaction,
  TransactionExecutionObserver
}

/** Stops the first transaction of a thread after it has written its data and before it commits,
  * until the gate is opened.
  *
  * The lab, the demo and the tests force commit orders with it: start the later job on its own
  * thread behind a gate, wait until it has arrived, run the earlier job to its end, and then open
  * the gate even if that job failed. There is no deadline, since the time that a job takes depends
  * on the machine.
  */
final class PhaseGate extends TransactionExecutionObserver {
  private val arrived = new CountDownLatch(1)
  private val opened = new CountDownLatch(1)
  private val held = new AtomicBoolean(false)
  @volatile private var isRefused = false

  /** Installs the gate on the calling thread. */
  def install(): Unit = TransactionExecutionObserver.setObserver(this)

  /** Removes any observer from the calling thread. */
  def uninstall(): Unit =
    TransactionExecutionObserver.setObserver(NoOpTransactionExecutionObserver)

  /** Waits up to `millis` milliseconds for a transaction to reach its commit; returns whether one
    * has.
    */
  def awaitArrival(millis: Long): Boolean = arrived.await(millis, TimeUnit.MILLISECONDS)

  /** Lets the held transaction go on. */
  def open(): Unit = opened.countDown()

  /** Lets the held transaction, or one that comes later, fail before its commit. */
  def refuse(): Unit = {
    isRefused = true
    open()
  }

  override def preparingCommit[T](f: => T): T = {
    if (held.compareAndSet(false, true)) {
      arrived.countDown()
      opened.await()
    }
    if (isRefused) throw new CancellationException("The race was interrupted before this commit.")
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
