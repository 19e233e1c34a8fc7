package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.OperationClass

/** An operation that knows its class, which others derive from its name and actions. */
trait ClassifiedOperation {

  /** The class by which it is judged. */
  def judgedAs: OperationClass

  /** The class by which later commits are judged against it. */
  def winsAs: OperationClass
}
