package io.interlock.spark.audit

import io.interlock.rules.advice.Advice
import io.interlock.rules.{Conflict, Policies, Policy, WinningCommit}
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** An audit record in words: first what happened, in words that a stranger understands, then by which
  * rule, where the jobs overlapped, and how both could have succeeded.
  *
  * @param partitionColumns
  *   the partition columns that the table has now
  * @param winners
  *   the winners of the record, as far as the log still tells
  * @param policies
  *   the policies that advice chooses from
  */
final case class Explanation(
    record: ConflictRecord,
    partitionColumns: Seq[String],
    winners: Seq[WinningCommit],
    policies: Seq[Policy]
) {
  private val policy = policies.find(found => record.text("policy").contains(found.name))
  private val advice = record.conflict.map(Advice.of(_, partitionColumns, policies))

  /** A row with the columns of [[Explanation.schema]]. */
  def toRow: Row = Row.fromSeq(record.toRow.toSeq ++ Seq(
    policy.map(_.source).orNull,
    advice.toSeq.flatMap(_.policies),
    advice.toSeq.flatMap(_.policiesByFiles),
    advice.toSeq.flatMap(_.policiesByRows),
    advice.map(_.layout).orNull,
    advice.map(found => Boolean.box(found.retryHelps)).orNull,
    text
  ))

  /** The whole explanation as text. */
  def text: String = {
    val lines = record.conflict.fold(passed)(lost)
    lines.filter(_.nonEmpty).mkString("\n")
  }

  private def fact(name: String): String = record.text(name).getOrElse("unknown")

  private def lost(conflict: Conflict): Seq[String] = {
    val saved = record.text("millisSaved").fold("")(millis =>
      s", which the last ${conflict.operation} of this table spent $millis ms on"
    )
    val stopped = conflict.phase.fold("")(phase => s" It was stopped $phase$saved.")
    val winner = conflict.winner.fold("another commit")(_.withClass)
    Seq(
      conflict.summary,
      s"${conflict.operation} (${conflict.operationClass}) read version ${conflict.readVersion} and " +
        s"lost against $winner.",
      byRule(conflict),
      s"Where they overlap: ${conflict.scope.getOrElse(Conflict.WholeTable)}.",
      list("Files", conflict.overlap.files),
      list("Rows", conflict.overlap.rows),
      list("Rows of the source that match them", conflict.overlap.sourceRows),
      list("Predicate", conflict.overlap.predicate.toSeq),
      advice.fold("")(underOthers),
      advice.fold("")(found => s"Layout: ${found.layout}"),
      advice.fold("")(found => s"Run it again? ${found.retry}"),
      s"Work lost: ${fact("millis")} ms of running time, and ${fact("bytes")} bytes of data files." +
        stopped,
      s"By ${fact("user")}, application ${fact("application")}, session ${fact("session")}.",
      ofBlock
    )
  }

  private def byRule(conflict: Conflict): String = conflict.rule match {
    case Some(rule) => s"Rule $rule${conflict.ruling.fold("")(": " + _)}.$source"
    case None => s"Found by a check of Delta's: ${conflict.kind.name}."
  }

  private def source: String = policy.fold("")(found => s" Source: ${found.source}.")

  private def underOthers(found: Advice): String = {
    val all = Seq(
      found.policies -> "",
      found.policiesByRows -> " if they touch different rows",
      found.policiesByFiles -> " if they touch different files"
    )
    val under = all.collect {
      case (names, condition) if names.nonEmpty =>
        names.mkString(", ") + condition
    }
    if (under.isEmpty) "" else under.mkString("Both succeed under ", "; ", ".")
  }

  private def passed: Seq[String] = {
    val first = winners match {
      case Seq(one) => one.toString
      case several => s"${several.size} other commits"
    }
    val (operation, policy) = (fact("operation"), fact("policy"))
    val lets = Policies.lets(policy, record.winners.headOption.flatMap(_.verdict))
    Seq(
      s"$operation succeeded although $first came first. Policy $policy $lets.",
      s"$operation (${fact("operationClass")}) made version ${fact("version")}. It had read version " +
        s"${fact("readVersion")}. There were other commits, and it passed them:"
    ) ++ record.winners.map { ruling =>
      val winner =
        winners.find(_.version == ruling.version).getOrElse(WinningCommit(ruling.version))
      s"  over ${winner.withClass}: ${ruling.verdict.getOrElse("unknown")}, rule " +
        ruling.rule.getOrElse("unknown")
    } ++ Seq(
      source.trim,
      s"Where they overlap: ${fact("scope")}.",
      s"Judging and rebasing took ${fact("millis")} ms; ${fact("bytes")} bytes of data files were " +
        "kept and not written again.",
      ofBlock
    )
  }

  private def ofBlock: String =
    record.text("block").fold("")(id => s"It is the commit of the atomic block $id.")

  private def list(title: String, items: Seq[String]): String =
    if (items.isEmpty) "" else items.mkString(s"$title: ", ", ", "")
}

object Explanation {
  private val names = ArrayType(StringType, containsNull = false)

  val schema: StructType = ConflictRecord.schema
    .add("source", StringType)
    .add("policies", names, nullable = false)
    .add("policies_by_files", names, nullable = false)
    .add("policies_by_rows", names, nullable = false)
    .add("layout", StringType)
    .add("retry_helps", BooleanType)
    .add("text", StringType, nullable = false)
}
