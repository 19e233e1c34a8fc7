package io.interlock.spark.errors

import java.io.IOException

import scala.util.control.NonFatal

import io.interlock.coordinator.Causes
import org.apache.spark.SparkThrowable

/** The storage's own error in the failure of a statement, if Spark and Delta have no error of their
  * own for it.
  */
object StorageFault {

  /** The innermost exception of the storage, as text. */
  def unapply(failed: Throwable): Option[String] = innermost(failed).filterNot(_ =>
    Causes.of(failed).exists {
      case _: IOException => false // PySpark has no classes for these
      case known: SparkThrowable => known.getCondition != null
      case _ => false
    }
  )

  /** The same, also if Spark or Delta has an error of its own for it. */
  def innermost(failed: Throwable): Option[String] = {
    val chain = Causes.of(failed)
    chain.collect { case fault: IOException => fault }.lastOption
      .filterNot(_ => !NonFatal(failed) || Causes.areInterrupt(failed))
      .map(described)
  }

  /** The same for a statement of several commits, one of which may already have raised an error of
    * Interlock.
    */
  object OfOneCommit {
    def unapply(failed: Throwable): Option[String] = failed match {
      case told: InterlockException if told.getCondition == InterlockException.StorageFailed =>
        Option(told.getMessageParameters.get("reason"))
      case _ => StorageFault.unapply(failed)
    }
  }

  /** The class of an exception and its message, which may be no more than a file name. A message of
    * HDFS may have the server's stack trace in it, which is left out.
    */
  def described(fault: Throwable): String = {
    val message = Option(fault.getMessage).map(_.linesIterator.takeWhile(!_.startsWith("\tat ")))
    s"${fault.getClass.getSimpleName}: ${message.fold("no message")(_.mkString("\n"))}"
  }
}
