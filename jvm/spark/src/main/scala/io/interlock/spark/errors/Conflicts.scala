package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import io.delta.exceptions._
import io.interlock.rules._
import io.interlock.rules.advice.Advice
import io.interlock.spark.text.Json
import org.apache.spark.SparkThrowable

/** A commit that a policy rejected. Every such error is also the Delta exception of its kind, so
  * that existing retry code still works.
  */
trait InterlockConflict extends Throwable with SparkThrowable {
  private[errors] def rendered: Rendered

  /** Why the commit was rejected. */
  def conflict: Conflict = rendered.conflict

  /** The facts of the conflict as a JSON object. */
  def conflictJson(): String = Json.write(
    ConflictFacts.of(conflict) ++ Map("condition" -> getCondition, "sqlState" -> getSqlState)
  )

  override def getMessage: String = rendered.message
  override def getErrorClass: String = rendered.condition
  override def getMessageParameters: java.util.Map[String, String] = rendered.parameters.asJava
  override def getSqlState: String = ErrorCatalogue.sqlState(getCondition)
}

/** The texts of a conflict's error.
  *
  * @param others
  *   the policies that the message names as others under which both jobs would succeed
  */
final private[errors] case class Rendered(
    conflict: Conflict,
    condition: String,
    others: Seq[String]
) {

  /** The message parameters, with all facts, even those that the message does not show: Spark
    * Connect passes them to its clients.
    */
  def parameters: Map[String, String] = ConflictFacts.of(conflict).map {
    case (key, several: Seq[_]) => key -> Json.write(several)
    case (key, value) => key -> value.toString
  } ++ Map(
    "lets" -> Policies.lets(conflict.policy, conflict.verdict.map(_.name)),
    "apart" -> apart
  )

  def message: String = ErrorCatalogue.message(condition, parameters)

  /** How both jobs could have succeeded, as a sentence. */
  private def apart: String = {
    val partitions = Option.unless(conflict.overlap.areRowsKnown)(
      "Jobs on different partitions never conflict"
    )
    val policies =
      Option.when(others.nonEmpty)(s"under ${others.mkString(" or ")} both jobs would succeed")
    val parts = partitions ++ policies
    if (parts.isEmpty) "" else s" ${parts.mkString("; ").capitalize}."
  }
}

final class ConcurrentAppendConflict private[errors] (private[errors] val rendered: Rendered)
    extends ConcurrentAppendException(rendered.message)
    with InterlockConflict

final class ConcurrentDeleteReadConflict private[errors] (private[errors] val rendered: Rendered)
    extends ConcurrentDeleteReadException(rendered.message)
    with InterlockConflict

final class ConcurrentDeleteDeleteConflict private[errors] (private[errors] val rendered: Rendered)
    extends ConcurrentDeleteDeleteException(rendered.message)
    with InterlockConflict

final class ConcurrentWriteConflict private[errors] (private[errors] val rendered: Rendered)
    extends ConcurrentWriteException(rendered.message)
    with InterlockConflict

final class MetadataChangedConflict private[errors] (private[errors] val rendered: Rendered)
    extends MetadataChangedException(rendered.message)
    with InterlockConflict

/** Turns conflicts into the exceptions of their kinds. */
object Conflicts {
  type ConflictException = org.apache.spark.sql.delta.DeltaConcurrentModificationException
    with InterlockConflict

  /** @param known
    *   the policies that the message may name as others under which both jobs would succeed
    */
  def raised(conflict: Conflict, known: Seq[Policy]): ConflictException = {
    val condition = conflict.kind match {
      case raised: ConflictKind.Raised => raised.condition
      case _ => ConflictKind.ConcurrentWrite.condition
    }
    val rendered = Rendered(conflict, condition, Advice.of(conflict, Nil, known).policies)
    conflict.kind match {
      case ConflictKind.ConcurrentAppend => new ConcurrentAppendConflict(rendered)
      case ConflictKind.ConcurrentDeleteRead => new ConcurrentDeleteReadConflict(rendered)
      case ConflictKind.ConcurrentDeleteDelete => new ConcurrentDeleteDeleteConflict(rendered)
      case ConflictKind.MetadataChanged => new MetadataChangedConflict(rendered)
      case _ => new ConcurrentWriteConflict(rendered)
    }
  }

  /** The rejection of a job that no policy judges.
    *
    * @param cause
    *   what Delta or the log raised, if they did
    */
  def unjudged(
      reason: Unjudged,
      policy: Policy,
      operationClass: OperationClass,
      operation: String,
      table: String,
      readVersion: Long,
      txnId: String,
      cause: Option[Throwable]
  ): ConflictException = {
    val conflict = Conflict(
      ConflictKind.ConcurrentWrite,
      policy.name,
      operation,
      operationClass,
      readVersion,
      table,
      txnId,
      winner = Some(WinningCommit(readVersion + 1)),
      why = reason.why,
      rule = Some(reason.rule),
      verdict = Some(Verdict.Fail),
      scope = Some(Conflict.WholeTable)
    )
    val exception = raised(conflict, Nil)
    cause.foreach(exception.initCause)
    exception
  }
}

/** Why a job is rejected that no policy judges.
  *
  * @param rule
  *   the rule in errors and records, in place of a policy's cell
  * @param why
  *   the reason as a clause
  */
sealed abstract class Unjudged(val rule: String, val why: String)

object Unjudged {

  /** RESTORE, CLONE and CONVERT fail on any concurrent commit. */
  case object AnyCommit
      extends Unjudged("any concurrent commit", "another job committed while it ran")

  /** A job cannot be judged against commits that were removed from the log. */
  case object CommitsGone
      extends Unjudged(
        "commits that are gone",
        "the log no longer has the commits after the version that it read " +
          "(delta.logRetentionDuration is shorter than the job)"
      )
}
