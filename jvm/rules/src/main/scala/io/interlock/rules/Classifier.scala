package io.interlock.rules

import io.interlock.rules.OperationClass._

/** The facts in a commit by which it is classified.
  *
  * @param name
  *   the operation's name in the table's history
  * @param parameters
  *   the operation's parameters, strings without quotes
  * @param removesAll
  *   whether it removes every file that it found in the table; evaluated for overwrites only, since
  *   counting files may be slow; true if it is not known
  * @param partitioned
  *   whether the table is partitioned
  */
final case class OperationFacts(
    name: String,
    parameters: Map[String, String],
    addsFiles: Boolean,
    removesFiles: Boolean,
    changesData: Boolean,
    removesAll: () => Boolean,
    partitioned: Boolean
) {

  def parameter(key: String): Option[String] = parameters.get(key).filter(_.nonEmpty)

  /** Whether an overwrite replaces only the partitions it writes. A REPLACE TABLE never does, but
    * Delta records `saveAsTable` of a V1 writer as one, and that may.
    */
  def replacesDynamically: Boolean = partitioned &&
    parameter("isDynamicPartitionOverwrite").contains("true") &&
    (name == "WRITE" || parameter("isV1SaveAsTableOverwrite").contains("true"))

  /** Whether it only moves rows between files. */
  def rearrangesOnly: Boolean = (addsFiles || removesFiles) && !changesData
}

/** Decides the class of a commit, Interlock's or a foreign writer's, from the facts in the commit
  * (docs/entry-points.md lists the statements).
  *
  * @param selectsByPartition
  *   whether a SQL predicate uses partition columns only
  * @param policy
  *   the table's policy, which decides the classes of compactions
  */
final class Classifier(selectsByPartition: String => Boolean, policy: Policy) {

  def classify(facts: OperationFacts): OperationClass = facts.name match {
    case "WRITE" => write(facts)
    case "STREAMING UPDATE" =>
      if (facts.parameter("outputMode").contains("Complete")) Overwrite else Append
    case "UPDATE" | "DELETE" | "MERGE" => Mutate
    case "TRUNCATE" | "RESTORE" | "CLONE" | "CONVERT" => Overwrite
    case "COMPACT MAJOR" => policy.majorCompaction
    case "COMPACT MINOR" | "MERGE SMALLFILES" | "OPTIMIZE" | "REORG" => policy.compaction
    case name if name.contains("REPLACE TABLE") || name.startsWith("CREATE TABLE") =>
      overwrite(facts)
    case name if Classifier.maintenance(name) => Metadata
    case _ => byActions(facts)
  }

  private def write(facts: OperationFacts): OperationClass =
    if (facts.rearrangesOnly) policy.compaction
    else if (facts.parameter("mode").contains("Overwrite")) overwrite(facts)
    else Append

  /** An overwrite that names no part of the table and yet keeps files replaced only matching rows:
    * some of Delta's writers do not record their predicate.
    */
  private def overwrite(facts: OperationFacts): OperationClass = {
    val matchesRows =
      facts.parameters.contains("replaceOnCond") || facts.parameters.contains("replaceUsingCols")
    facts.parameter("predicate") match {
      case _ if matchesRows => Mutate
      case Some(predicate) => if (selectsByPartition(predicate)) Overwrite else Mutate
      case None => if (facts.replacesDynamically || facts.removesAll()) Overwrite else Mutate
    }
  }

  private def byActions(facts: OperationFacts): OperationClass =
    if (!facts.addsFiles && !facts.removesFiles) Metadata
    else if (facts.rearrangesOnly) policy.compaction
    else if (!facts.removesFiles) Append
    else Mutate
}

object Classifier {

  /** Operations that rewrite file entries without changing data and are not compactions. */
  private val maintenance = Set("ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL", "COMPUTE STATS")
}
