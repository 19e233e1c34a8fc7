package org.apache.spark.sql.delta.interlock.block

import io.interlock.spark.compaction.FailedCompaction
import io.interlock.spark.properties.TablePolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.interlock.log.{ChecksummedSnapshot, FreshSnapshot, LogListing}
import org.apache.spark.sql.delta.interlock.statement.{InterlockTransaction, RunningTransactions}
import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}

/** Replaces every Delta transaction of this JVM by an [[InterlockTransaction]].
  *
  * Delta creates each transaction inside the observer of the executing thread. The thread-local
  * variable that holds the observer is replaced, once per JVM, by one that returns each thread's
  * observer wrapped in a [[WrappingObserver]]. So the hook works on every thread, even if no
  * session ever analyzed a plan on it, and observers that others set still work.
  */
object TransactionHook {
  private val setter = "$_setter_$threadObserver_$eq"

  /** Installs the hook; further calls do nothing.
    *
    * @throws IllegalStateException
    *   if Delta's observer cannot be wrapped, for example in another Delta release
    */
  def install(): Unit = installed

  private lazy val installed: Unit = {
    val companion = TransactionExecutionObserver
    val method = companion.getClass.getMethods
      .find(_.getName.endsWith(setter))
      .getOrElse(throw new IllegalStateException(
        "Interlock cannot see the transactions of this Delta release. Use delta-spark 4.4.0."
      ))
    method.invoke(companion, new WrappingThreadLocal(companion.getObserver))
    ()
  }

  /** Returns each thread's observer wrapped, and stores it without the wrapper. */
  final private class WrappingThreadLocal(initial: TransactionExecutionObserver)
      extends ThreadLocal[TransactionExecutionObserver] {
    private val wrapped =
      ThreadLocal.withInitial[WrappingObserver](() => new WrappingObserver(initial))

    override def get(): TransactionExecutionObserver = wrapped.get()

    override def set(observer: TransactionExecutionObserver): Unit = observer match {
      case wrapper: WrappingObserver => wrapped.set(wrapper)
      case other => wrapped.set(new WrappingObserver(other))
    }

    override def remove(): Unit = wrapped.remove()
  }
}

/** Calls `inner` for every phase and replaces the transaction that is created. */
final private class WrappingObserver(inner: TransactionExecutionObserver)
    extends TransactionExecutionObserver {

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
    FailedCompaction.refuseRetry()
    inner.startingTransaction {
      val created = fresh(() => f).getOrElse(LogListing.complete(f))
      val block = SparkSession.getActiveSession.flatMap(Block.of)
      if (created.getClass != classOf[OptimisticTransaction]) created
      else if (block.nonEmpty) block.get.transaction(created)
      else {
        val read = WholeBlocks.settled(created.snapshot, created.catalogTable)
        val ours = new InterlockTransaction(
          created.deltaLog,
          created.catalogTable,
          if (TablePolicy.coordinatorOf(read.metadata.configuration).isEmpty) read
          else ChecksummedSnapshot.of(read)
        )
        RunningTransactions.start(ours)
        ours
      }
    }
  }

  /** A transaction on the newest snapshot, where that is found without listing the log. */
  private def fresh(create: () => OptimisticTransaction): Option[OptimisticTransaction] =
    StartedTransaction.of(create).filter(_.snapshot.isEmpty).flatMap { started =>
      FreshSnapshot.of(started.log, started.table)
        .map(new OptimisticTransaction(started.log, started.table, _))
    }

  override def createChild(): TransactionExecutionObserver =
    new WrappingObserver(inner.createChild())
  override def preparingCommit[T](f: => T): T = inner.preparingCommit(f)
  override def beginDoCommit(): Unit = inner.beginDoCommit()
  override def beginBackfill(): Unit = inner.beginBackfill()
  override def beginPostCommit(): Unit = inner.beginPostCommit()
  override def transactionCommitted(): Unit = inner.transactionCommitted()
  override def transactionAborted(): Unit = inner.transactionAborted()
  override def getNextObserver: Option[TransactionExecutionObserver] = inner.getNextObserver
  override def setNextObserver(next: TransactionExecutionObserver): Unit =
    inner.setNextObserver(next)
  override def advanceToNextThreadObserver(): Unit = inner.advanceToNextThreadObserver()
}
