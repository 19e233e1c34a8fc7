package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import io.interlock.coordinator.CoordinatorException
import io.interlock.rules.{NearestName, Policy}
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

  def unknownPolicy(name: String, known: Seq[String]): InterlockException = of(
    "INTERLOCK_UNKNOWN_POLICY",
    "policy" -> name,
    "suggestion" -> didYouMean(name, known),
    "policies" -> known.mkString(", ")
  )

  /** @param key
    *   the configuration key that has the text or its path
    * @param problem
    *   a sentence
    */
  def malformedPolicy(policy: String, key: String, problem: String): InterlockException = of(
    "INTERLOCK_MALFORMED_POLICY",
    "policy" -> policy,
    "key" -> key,
    "problem" -> problem
  )

  /** @param digest
    *   the digest of the table's rules
    * @param found
    *   the session's policy of that name
    * @param key
    *   the configuration key that gives the session a policy of this name
    */
  def policyMismatch(
      table: String,
      policy: String,
      digest: Option[String],
      found: Option[Policy],
      key: String
  ): InterlockException = of(
    "INTERLOCK_POLICY_MISMATCH",
    "table" -> table,
    "policy" -> policy,
    "expected" -> digest.fold("no digest")("the digest " + _),
    "found" -> found.fold("no policy of that name")("one with the digest " + _.digest),
    "key" -> key
  )

  /** @param found
    *   what was found instead, as a sentence without its full stop
    */
  def unknownTransaction(txnId: String, table: String, found: String): InterlockException = of(
    "INTERLOCK_UNKNOWN_TRANSACTION",
    "txnId" -> txnId,
    "table" -> table,
    "found" -> found
  )

  def unknownProperty(key: String, known: Seq[String]): InterlockException = of(
    "INTERLOCK_UNKNOWN_PROPERTY",
    "property" -> key,
    "suggestion" -> didYouMean(key, known),
    "properties" -> known.mkString(", ")
  )

  def propertyAsOption(key: String): InterlockException =
    of("INTERLOCK_PROPERTY_AS_OPTION", "property" -> key)

  /** @param key
    *   the setting of the session that turns statistics off
    */
  def statisticsRequired(table: String, policy: String, key: String): InterlockException = of(
    "INTERLOCK_STATISTICS_REQUIRED",
    "table" -> table,
    "policy" -> policy,
    "key" -> key
  )

  /** @param table
    *   the table as the statement names it
    * @param found
    *   what that is
    */
  def propertyNeedsDelta(key: String, table: String, found: String): InterlockException = of(
    "INTERLOCK_PROPERTY_NEEDS_DELTA",
    "property" -> key,
    "table" -> table,
    "found" -> found
  )

  def propertyNeedsCatalog(key: String, table: String, catalog: String): InterlockException = of(
    "INTERLOCK_PROPERTY_NEEDS_CATALOG",
    "property" -> key,
    "table" -> table,
    "catalog" -> catalog
  )

  /** @param found
    *   the contrary value, "unset" or "dropped"
    */
  def requiredProperty(
      policy: String,
      key: String,
      value: String,
      found: String
  ): InterlockException = of(
    "INTERLOCK_REQUIRED_PROPERTY",
    "policy" -> policy,
    "property" -> key,
    "value" -> value,
    "found" -> found
  )

  /** @param others
    *   the policies that do without deletion vectors
    */
  def withoutDeletionVectors(
      policy: String,
      key: String,
      value: String,
      others: Seq[String]
  ): InterlockException = of(
    "INTERLOCK_NO_DELETION_VECTORS",
    "policy" -> policy,
    "property" -> key,
    "value" -> value,
    "others" -> others.mkString(", ")
  )

  def madeBeforePolicy(table: String, policy: String): InterlockException =
    of("INTERLOCK_MADE_BEFORE_POLICY", "table" -> table, "policy" -> policy)

  def policyNeedsAlter(policy: String): InterlockException =
    of("INTERLOCK_POLICY_NEEDS_ALTER", "policy" -> policy)

  /** @param other
    *   what orders the table's commits
    */
  def otherCoordinator(table: String, other: String): InterlockException =
    of("INTERLOCK_OTHER_COORDINATOR", "table" -> table, "other" -> other)

  def operationNotSupported(operation: String, table: String, policy: String): InterlockException =
    of(
      "INTERLOCK_OPERATION_NOT_SUPPORTED",
      "operation" -> operation,
      "table" -> table,
      "policy" -> policy
    )

  /** @param orElse
    *   what else may be done, as the end of a sentence
    */
  def notAPartitionColumn(
      column: String,
      table: String,
      columns: Seq[String],
      orElse: String
  ): InterlockException =
    of(
      "INTERLOCK_NOT_A_PARTITION_COLUMN",
      "column" -> column,
      "table" -> table,
      "orElse" -> orElse,
      "columns" -> (if (columns.isEmpty) "none" else columns.mkString(", "))
    )

  /** @param expected
    *   what values the property or configuration takes
    */
  def invalidProperty(key: String, value: String, expected: String): InterlockException = of(
    "INTERLOCK_INVALID_PROPERTY",
    "property" -> key,
    "value" -> value,
    "expected" -> expected
  )

  /** @param found
    *   the text after the table's name
    */
  def compactSyntax(found: String): InterlockException =
    of("INTERLOCK_COMPACT_SYNTAX", "found" -> found)

  /** @param found
    *   the statement
    */
  def showHistorySyntax(found: String): InterlockException =
    of("INTERLOCK_SHOW_HISTORY_SYNTAX", "found" -> found)

  def policyRequired(operation: String, table: String): InterlockException =
    of("INTERLOCK_POLICY_REQUIRED", "operation" -> operation, "table" -> table)

  def notADeltaTable(operation: String, table: String): InterlockException =
    of("INTERLOCK_NOT_A_DELTA_TABLE", "operation" -> operation, "table" -> table)

  /** @param path the path as the statement names it */
  def notAWholeTable(operation: String, path: String): InterlockException =
    of("INTERLOCK_NOT_A_WHOLE_TABLE", "operation" -> operation, "path" -> path)

  /** @param found
    *   what a compaction read or wrote, and what it should have
    */
  def compactionMismatch(table: String, found: String): InterlockException =
    of("INTERLOCK_COMPACTION_MISMATCH", "table" -> table, "found" -> found)

  /** @param found
    *   what became of the table, as a clause
    * @param cause
    *   the failure that the missing table led to
    */
  def tableGone(
      table: String,
      operation: String,
      found: String,
      cause: Throwable
  ): InterlockException = of(
    cause,
    "INTERLOCK_TABLE_GONE",
    "table" -> table,
    "operation" -> operation,
    "found" -> found
  )

  /** @param version
    *   the version of the VACUUM
    * @param files
    *   the number of the statement's files that it has deleted
    */
  def filesVacuumed(
      operation: String,
      table: String,
      version: Long,
      files: Int
  ): InterlockException = of(
    "INTERLOCK_FILES_VACUUMED",
    "operation" -> operation,
    "table" -> table,
    "version" -> version.toString,
    "files" -> files.toString
  )

  def unknownCoordinator(name: String, key: String): InterlockException =
    of("INTERLOCK_UNKNOWN_COORDINATOR", "coordinator" -> name, "key" -> key)

  def coordinatorOfSession(key: String): InterlockException = of(
    "INTERLOCK_COORDINATOR_SETTING",
    "setting" -> key,
    "problem" -> ("a session cannot say where passwords are sent: RESET it, and let the " +
      "administrator set it where Spark is started, in spark-defaults.conf or by --conf")
  )

  def tooManyAttempts(table: String, attempts: Int, key: String): InterlockException = of(
    "INTERLOCK_TOO_MANY_ATTEMPTS",
    "table" -> table,
    "attempts" -> attempts.toString,
    "key" -> key
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

  def bindingIncomplete(
      table: String,
      operation: String,
      reason: String,
      cause: Throwable
  ): InterlockException = of(
    cause,
    "INTERLOCK_BINDING_INCOMPLETE",
    "table" -> table,
    "operation" -> operation,
    "reason" -> reason
  )

  def failedAfterCommit(
      table: String,
      operation: String,
      txnId: String,
      reason: String,
      cause: Throwable
  ): InterlockException = of(
    cause,
    "INTERLOCK_FAILED_AFTER_COMMIT",
    "table" -> table,
    "operation" -> operation,
    "txnId" -> txnId,
    "reason" -> reason
  )

  /** @param owner
    *   who has the claim
    */
  def claimed(table: String, owner: String, seconds: Long): InterlockException = of(
    "INTERLOCK_CLAIMED",
    "table" -> table,
    "owner" -> owner,
    "seconds" -> seconds.toString
  )

  /** @param owner
    *   who has the claim
    */
  def autoCompactionSkipped(table: String, owner: String): InterlockException =
    of("INTERLOCK_AUTO_COMPACTION_SKIPPED", "table" -> table, "owner" -> owner)

  /** A refusal by the commit coordinator. */
  def ofCoordinator(refusal: CoordinatorException): InterlockException =
    of(refusal, refusal.condition, refusal.parameters.toSeq: _*)

  /** @param what
    *   what the argument stands for
    * @param found
    *   the expression, as SQL
    */
  def invalidArgument(what: String, found: String, expected: String): InterlockException = of(
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
  def tooFewVersions(table: String, n: Int, kind: String, count: Long): InterlockException = of(
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
    of("INTERLOCK_RANGE_NEEDS_TABLE", "relation" -> relation, "found" -> found)

  /** @param options
    *   the options that cannot be combined
    */
  def rangeOptions(options: Seq[String]): InterlockException =
    of("INTERLOCK_RANGE_OPTIONS", "options" -> options.mkString(", "))

  def rangeBackwards(table: String, after: Long, until: Long): InterlockException = of(
    "INTERLOCK_RANGE_BACKWARDS",
    "table" -> table,
    "after" -> after.toString,
    "until" -> until.toString
  )

  def versionNotThere(
      table: String,
      version: Long,
      earliest: Long,
      latest: Long
  ): InterlockException = of(
    "INTERLOCK_VERSION_NOT_THERE",
    "table" -> table,
    "version" -> version.toString,
    "earliest" -> earliest.toString,
    "latest" -> latest.toString
  )

  /** @param version
    *   the end of a range
    * @param first
    *   the version with which ranges may begin, if row tracking is on by now
    */
  def rowTrackingRequired(
      table: String,
      version: Long,
      first: Option[Long]
  ): InterlockException = of(
    "INTERLOCK_ROW_TRACKING_REQUIRED",
    "table" -> table,
    "version" -> version.toString,
    "help" -> first.fold(
      "Turn it on for what is written from now on: " +
        s"ALTER TABLE $table SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')."
    )(found => s"It is on by now: ask for ranges that begin with version $found or a later one.")
  )

  /** @param first
    *   the first version with which the range may begin
    * @param why
    *   a sentence
    */
  def rowTrackingTooLate(
      table: String,
      after: Long,
      first: Long,
      why: String
  ): InterlockException = of(
    "INTERLOCK_ROW_TRACKING_TOO_LATE",
    "table" -> table,
    "after" -> after.toString,
    "first" -> first.toString,
    "why" -> why
  )

  def unknownProcedure(name: String, known: Seq[String]): InterlockException = of(
    "INTERLOCK_UNKNOWN_PROCEDURE",
    "procedure" -> name,
    "suggestion" -> didYouMean(name, known),
    "procedures" -> known.mkString(", ")
  )

  /** "Did you mean ...?", or nothing if the name is blank. */
  private def didYouMean(name: String, known: Seq[String]): String =
    if (name.isBlank) "" else s"Did you mean '${NearestName.of(name, known)}'? "

  def versionMismatch(found: String, install: String): InterlockException =
    of("INTERLOCK_VERSION_MISMATCH", "found" -> found, "install" -> install)

  private def of(condition: String, parameters: (String, String)*): InterlockException =
    of(null, condition, parameters: _*)

  private def of(
      cause: Throwable,
      condition: String,
      parameters: (String, String)*
  ): InterlockException = new InterlockException(condition, parameters.toMap, cause)
}
