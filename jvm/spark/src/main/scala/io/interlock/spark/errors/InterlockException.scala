package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import io.interlock.coordinator.CoordinatorException
import io.interlock.rules.NearestName
import org.apache.spark.SparkThrowable

/** An error of Interlock that is not a conflict. Nothing was committed, unless the condition is
  * INTERLOCK_FAILED_AFTER_COMMIT or INTERLOCK_BINDING_INCOMPLETE.
  */
final class InterlockException private (
    condition: String,
    parameters: Map[String, String],
    cause: Throwable
) extends RuntimeException(ErrorCatalogue.message(condition, parameters), cause)
    with SparkThrowable {
  override def getCondition: String = condition
  override def getErrorClass: String = condition
  override def getSqlState: String = ErrorCatalogue.sqlState(condition)
  override def getMessageParameters: java.util.Map[String, String] = parameters.asJava
}

object InterlockException {
  private[errors] val StorageFailed = "INTERLOCK_STORAGE_FAILED"

  /** An error whose parameters only one place has; [[ErrorCatalogue]] has its text. */
  def apply(condition: String, parameters: (String, String)*): InterlockException =
    of(null, condition, parameters: _*)

  /** The same, with its cause. */
  def of(
      cause: Throwable,
      condition: String,
      parameters: (String, String)*
  ): InterlockException = new InterlockException(condition, parameters.toMap, cause)

  def unknownPolicy(name: String, known: Seq[String]): InterlockException = apply(
    "INTERLOCK_UNKNOWN_POLICY",
    "policy" -> name,
    "suggestion" -> didYouMean(name, known),
    "policies" -> known.mkString(", ")
  )

  def unknownProperty(key: String, known: Seq[String]): InterlockException = apply(
    "INTERLOCK_UNKNOWN_PROPERTY",
    "property" -> key,
    "suggestion" -> didYouMean(key, known),
    "properties" -> known.mkString(", ")
  )

  /** @param found
    *   the contrary value, "unset" or "dropped"
    */
  def requiredProperty(
      policy: String,
      key: String,
      value: String,
      found: String
  ): InterlockException = apply(
    "INTERLOCK_REQUIRED_PROPERTY",
    "policy" -> policy,
    "property" -> key,
    "value" -> value,
    "found" -> found
  )

  def madeBeforePolicy(table: String, policy: String): InterlockException =
    apply("INTERLOCK_MADE_BEFORE_POLICY", "table" -> table, "policy" -> policy)

  def operationNotSupported(operation: String, table: String, policy: String): InterlockException =
    apply(
      "INTERLOCK_OPERATION_NOT_SUPPORTED",
      "operation" -> operation,
      "table" -> table,
      "policy" -> policy
    )

  /** @param expected
    *   what values the property or configuration takes
    */
  def invalidProperty(key: String, value: String, expected: String): InterlockException = apply(
    "INTERLOCK_INVALID_PROPERTY",
    "property" -> key,
    "value" -> value,
    "expected" -> expected
  )

  /** @param found
    *   the text after the table's name
    */
  def compactSyntax(found: String): InterlockException =
    apply("INTERLOCK_COMPACT_SYNTAX", "found" -> found)

  def policyRequired(operation: String, table: String): InterlockException =
    apply("INTERLOCK_POLICY_REQUIRED", "operation" -> operation, "table" -> table)

  def notADeltaTable(
      operation: String,
      table: String,
      found: String = "It is not a Delta table, and only Delta tables have versions"
  ): InterlockException = apply(
    "INTERLOCK_NOT_A_DELTA_TABLE",
    "operation" -> operation,
    "table" -> table,
    "found" -> found
  )

  /** @param reason
    *   the storage's error
    * @param left
    *   the number of the statement's files that could not be deleted
    */
  def storageFailed(
      table: String,
      operation: String,
      reason: String,
      left: Int,
      cause: Throwable
  ): InterlockException = of(
    cause,
    StorageFailed,
    "table" -> table,
    "operation" -> operation,
    "reason" -> reason,
    "left" -> (if (left == 0) "nothing of the statement was kept"
               else s"$left of the statement's files could not be deleted and are left to VACUUM")
  )

  /** @param owner
    *   who has the claim
    */
  def autoCompactionSkipped(table: String, owner: String): InterlockException =
    apply("INTERLOCK_AUTO_COMPACTION_SKIPPED", "table" -> table, "owner" -> owner)

  /** A refusal by the commit coordinator. */
  def ofCoordinator(refusal: CoordinatorException): InterlockException =
    of(refusal, refusal.condition, refusal.parameters.toSeq: _*)

  /** @param what
    *   what the argument stands for
    * @param found
    *   the expression, as SQL
    */
  def invalidArgument(what: String, found: String, expected: String): InterlockException = apply(
    "INTERLOCK_INVALID_ARGUMENT",
    "what" -> what.capitalize,
    "found" -> found,
    "expected" -> expected
  )

  /** @param kind
    *   the kind of versions
    * @param count
    *   the number of such versions
    */
  def tooFewVersions(table: String, n: Int, kind: String, count: Long): InterlockException = apply(
    "INTERLOCK_TOO_FEW_VERSIONS",
    "table" -> table,
    "n" -> n.toString,
    "kind" -> kind,
    "count" -> count.toString
  )

  /** @param found
    *   what the relation is instead of a table
    */
  def rangeNeedsTable(relation: String, found: String): InterlockException =
    apply("INTERLOCK_RANGE_NEEDS_TABLE", "relation" -> relation, "found" -> found)

  def unknownProcedure(name: String, known: Seq[String]): InterlockException = apply(
    "INTERLOCK_UNKNOWN_PROCEDURE",
    "procedure" -> name,
    "suggestion" -> didYouMean(name, known),
    "procedures" -> known.mkString(", ")
  )

  /** "Did you mean ...?", or nothing if the name is blank. */
  private def didYouMean(name: String, known: Seq[String]): String =
    if (name.isBlank) "" else s"Did you mean '${NearestName.of(name, known)}'? "

  def versionMismatch(found: String, install: String): InterlockException =
    apply("INTERLOCK_VERSION_MISMATCH", "found" -> found, "install" -> install)
}
