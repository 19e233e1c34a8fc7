package org.apache.spark.interlock.ui

import com.fasterxml.jackson.databind.annotation.JsonDeserialize
import org.apache.spark.scheduler.SparkListenerEvent

/** A commit under a policy was made or rejected. Posted where the application has a UI or an event
  * log, in which it is kept.
  *
  * @param time
  *   in milliseconds since 1970
  * @param outcome
  *   COMMITTED, REBASED where it passed other commits, or REJECTED
  * @param winners
  *   the versions that it passed, or the one that it lost against
  * @param rules
  *   for each of the winners the policy's cell that decided; empty where Delta's own check did
  * @param verdicts
  *   for each of the winners what that cell says
  * @param kind
  *   Delta's name for the conflict where its own check decided, such as MetadataChanged; else empty
  * @param explanation
  *   all of it, for people; empty for COMMITTED
  */
final case class SparkListenerInterlockCommit(
    time: Long,
    txnId: String,
    table: String,
    operation: String,
    operationClass: String,
    policy: String,
    outcome: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) version: Option[Long],
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) winners: Seq[Long],
    rules: Seq[String],
    verdicts: Seq[String],
    kind: String,
    scope: String,
    explanation: String
) extends SparkListenerEvent

object SparkListenerInterlockCommit {
  val Committed = "COMMITTED"
  val Rebased = "REBASED"
  val Rejected = "REJECTED"
}
