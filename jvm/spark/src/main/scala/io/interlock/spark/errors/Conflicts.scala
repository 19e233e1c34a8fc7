package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import io.delta.exceptions._
import io.interlock.rules.{Conflict, ConflictKind, OperationClass, Policy}
import io.interlock.spark.text.Json
import org.apache.spark.SparkThrowable

/** A commit that a policy rejected. Every such error is also the Delta exception of its kind, so
  * that existing retry code goes on working.
  */
trait InterlockConflict extends Throwable with SparkThrowable {
  private[errors] def rendered: Rendered

  /** The facts of the conflict: text, whole numbers and lists of text. */
  def facts: Map[String, Any] = rendered.facts

  /** The same as a JSON object. */
  def conflictJson(): String = Json.write(facts)

  override def getMessage: String = rendered.message
  override def getErrorClass: String = rendered.condition
  override def getMessageParameters: java.util.Map[String, String] = rendered.parameters.asJava
  override def getSqlState: String = ErrorCatalogue.sqlState(getCondition)
}

/** @param message
  *   the text of the condition with its parameters
  */
final private[errors] case class Rendered(
    condition: String,
    parameters: Map[String, String],
    private val ofConflict: Map[String, Any]
) {
  def message: String = ErrorCatalogue.message(condition, parameters)
  def facts: Map[String, Any] =
    ofConflict ++ Map("condition" -> condition, "sqlState" -> ErrorCatalogue.sqlState(condition))
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

/** Turns the facts of a conflict into the exception of its kind. */
object Conflicts {
  type ConflictException = org.apache.spark.sql.delta.DeltaConcurrentModificationException
    with InterlockConflict

  /** A FAIL of a policy's matrix.
    *
    * @param known
    *   the policies that the message may name as others under which both jobs would succeed
    */
  def byPolicy(conflict: Conflict, known: Seq[Policy]): ConflictException = {
    val facts = Map[String, Any](
      "policy" -> conflict.policy,
      "rule" -> conflict.rule,
      "verdict" -> conflict.verdict.name,
      "earlierClass" -> conflict.earlierClass.name,
      "laterClass" -> conflict.laterClass.name,
      "earlierOperation" -> conflict.earlierOperation,
      "laterOperation" -> conflict.laterOperation,
      "readVersion" -> conflict.readVersion,
      "winnerVersion" -> conflict.winnerVersion,
      "scope" -> conflict.scope,
      "table" -> conflict.table,
      "attempt" -> conflict.attempt,
      "why" -> conflict.why
    ) ++ conflict.overlap.toSeq.flatMap(met =>
      Seq("files" -> met.files, "rows" -> met.rows) ++ met.predicate.map("predicate" -> _) ++
        Option.when(met.undecided)("undecided" -> true)
    )
    val others = Conflict.policiesThatAllow(conflict, known)
    val advice =
      if (others.isEmpty) "" else s"; under ${others.mkString(" or ")} both jobs would succeed"
    val rendered =
      Rendered(conflict.kind.condition, parameters(facts) + ("otherPolicies" -> advice), facts)
    conflict.kind match {
      case ConflictKind.ConcurrentAppend => new ConcurrentAppendConflict(rendered)
      case ConflictKind.ConcurrentDeleteRead => new ConcurrentDeleteReadConflict(rendered)
      case ConflictKind.ConcurrentDeleteDelete => new ConcurrentDeleteDeleteConflict(rendered)
    }
  }

  /** RESTORE, CLONE and CONVERT fail on any concurrent commit.
    *
    * @param cause
    *   Delta's error
    */
  def concurrentWrite(
      policy: Policy,
      operation: String,
      table: String,
      readVersion: Long,
      attempt: String,
      cause: Throwable
  ): ConflictException = {
    val facts = Map(
      "rule" -> "any concurrent commit",
      "why" -> s"$operation fails after any concurrent commit"
    )
    unjudged(
      facts,
      policy,
      OperationClass.Overwrite,
      operation,
      table,
      readVersion,
      attempt,
      cause
    )
  }

  /** Nobody can judge a job against commits that the log has no more.
    *
    * @param cause
    *   what went wrong without them
    */
  def commitsGone(
      policy: Policy,
      laterClass: OperationClass,
      operation: String,
      table: String,
      readVersion: Long,
      attempt: String,
      cause: Throwable
  ): ConflictException = {
    val facts = Map(
      "rule" -> "commits that are gone",
      "why" -> (s"$operation fails where the log was cleaned up to behind that version, as " +
        "delta.logRetentionDuration is shorter than the job")
    )
    unjudged(facts, policy, laterClass, operation, table, readVersion, attempt, cause)
  }

  private def unjudged(
      rule: Map[String, String],
      policy: Policy,
      laterClass: OperationClass,
      operation: String,
      table: String,
      readVersion: Long,
      attempt: String,
      cause: Throwable
  ): ConflictException = {
    val facts = rule ++ Map[String, Any](
      "policy" -> policy.name,
      "verdict" -> "FAIL",
      "laterClass" -> laterClass.name,
      "laterOperation" -> operation,
      "readVersion" -> readVersion,
      "winnerVersion" -> (readVersion + 1),
      "scope" -> "the whole table",
      "table" -> table,
      "attempt" -> attempt
    )
    val conflict =
      new ConcurrentWriteConflict(Rendered("INTERLOCK_CONCURRENT_WRITE", parameters(facts), facts))
    conflict.initCause(cause)
    conflict
  }

  /** What Spark Connect tells its clients: the facts, whether or not the message shows them. */
  private def parameters(facts: Map[String, Any]): Map[String, String] =
    facts.map {
      case (key, several: Seq[_]) => key -> Json.write(several)
      case (key, value) => key -> value.toString
    } - "verdict"
}
