package io.interlock.spark.errors

import java.io.{IOException, InterruptedIOException}
import java.nio.channels.ClosedByInterruptException

import scala.util.control.NonFatal

import io.interlock.coordinator.Causes
import org.apache.spark.SparkThrowable

/** Tells what the storage said in the failure of a statement that Spark and Delta have no words for. */
object StorageFault {

  /** The innermost exception of the storage, as text. */
  def unapply(failed: Throwable): Option[String] = innermost(failed).filterNot(_ =>
    Causes.of(failed).exists {
      case _: IOException => false // PySpark knows none of them
      case known: SparkThrowable => known.getCondition != null
      case _ => false
    }
  )

  /** The same, also where Spark or Delta has words for it. */
  def innermost(failed: Throwable): Option[String] = {
    val chain = Causes.of(failed)
    chain.collect { case fault: IOException => fault }.lastOption
      .filterNot(_ => !NonFatal(failed) || isInterrupt(chain))
      .map(described)
  }

  /** The same of a statement of several commits, of which one may have told it already. */
  object OfOneCommit {
    def unapply(failed: Throwable): Option[String] = failed match {
      case told: InterlockException if told.getCondition == InterlockException.StorageFailed =>
        Option(told.getMessageParameters.get("reason"))
      case _ => StorageFault.unapply(failed)
    }
  }

  /** The kind of an exception and what it says, which for some is a file only. */
  def described(fault: Throwable): String =
    s"${fault.getClass.getSimpleName}: ${Option(fault.getMessage).getOrElse("no message")}"

  private def isInterrupt(chain: Seq[Throwable]): Boolean = chain.exists {
    case _: InterruptedException | _: InterruptedIOException | _: ClosedByInterruptException => true
    case _ => false
  }
}
