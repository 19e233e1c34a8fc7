package io.interlock.spark.audit

import io.interlock.rules.advice.{Advice, Rejection}
import io.interlock.rules.{ConflictKind, OperationClass, Policy}
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** An audit record in words: which jobs overlapped, by which rule, and how both could have succeeded.
  *
  * @param partitionColumns
  *   the partition columns that the table has now
  * @param winners
  *   the winners of the record that the log still has
  * @param policies
  *   the policies that advice chooses from
  */
final case class Explanation(
    record: ConflictRecord,
    partitionColumns: Seq[String],
    winners: Seq[WinningVersion],
    policies: Seq[Policy]
) {
  import record.commit

  private val policy = policies.find(found => commit.policy.contains(found.name))

  private val advice: Option[Advice] = record match {
    case _: Rebased => None
    case rejected: Rejected => rejected.kind.flatMap(ConflictKind.byName).map { kind =>
        val rejection = Rejection(
          kind,
          policy = commit.policy.getOrElse(""),
          winnerClass = rejected.winner.flatMap(_.operationClass).flatMap(OperationClass.byName),
          operationClass = commit.operationClass.flatMap(OperationClass.byName),
          partitionColumns,
          rejected.predicate,
          rejected.undecided
        )
        Advice.of(rejection, policies)
      }
  }

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
    val lines = record match {
      case rejected: Rejected => told(rejected)
      case rebased: Rebased => told(rebased)
    }
    lines.filter(_.nonEmpty).mkString("\n")
  }

  private def job: String = {
    val operation = commit.operation.getOrElse("A job")
    s"$operation${commit.operationClass.fold("")(name => s" ($name)")}"
  }

  private def told(rejected: Rejected): Seq[String] = {
    val saved = rejected.millisSaved.fold("")(millis =>
      s", which the last ${known(commit.operation)} of this table spent $millis ms on"
    )
    val read = commit.readVersion.fold("")(version => s" read version $version and")
    val lost = rejected.winner.fold("lost against another commit")(known =>
      "lost against " + winners.find(_.version == known.version).getOrElse(known).text
    )
    Seq(
      s"$job$read $lost.",
      byRule(rejected),
      "Where they overlap: " + commit.scope.getOrElse("the whole table") + ".",
      list("Files", rejected.files),
      list("Rows", rejected.rows),
      list("Rows of the source that match them", rejected.sourceRows),
      rejected.predicate.fold("")(predicate => s"Predicate: $predicate"),
      advice.fold("")(underOthers),
      advice.fold("")(found => s"Layout: ${found.layout}"),
      advice.fold("")(found => s"Run it again? ${found.retry}"),
      commit.millis.fold("")(millis =>
        s"Work lost: $millis ms of running time, and ${commit.bytes.getOrElse(0L)} bytes of data files." +
          rejected.phase.fold("")(phase => s" It was stopped $phase$saved.")
      ),
      s"By ${known(commit.user)}, application ${known(rejected.application)}, " +
        s"session ${known(rejected.session)}."
    )
  }

  private def byRule(rejected: Rejected): String = rejected.rule match {
    case Some(rule) =>
      s"Policy ${known(commit.policy)}, rule $rule${rejected.why.fold("")(": " + _)}.$source"
    case None =>
      s"Delta's own check under every policy, here ${known(commit.policy)}: ${known(rejected.kind)}."
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

  private def told(rebased: Rebased): Seq[String] = {
    val passed = rebased.winners.map { winner =>
      val found = winners.find(_.version == winner.version)
        .fold(s"version ${winner.version}")(_.text)
      s"  over $found: ${known(winner.verdict)}, rule ${known(winner.rule)}"
    }
    val read = commit.readVersion.fold("")(version => s" It had read version $version.")
    Seq(
      s"$job made version ${rebased.version}.$read There were other commits, and it passed them:"
    ) ++ passed ++ Seq(
      s"Policy ${known(commit.policy)}.$source",
      commit.scope.fold("")(scope => s"Where they overlap: $scope."),
      commit.millis.fold("")(millis =>
        s"Judging and rebasing took $millis ms; ${commit.bytes.getOrElse(0L)} bytes of data files " +
          "were kept and not written again."
      )
    )
  }

  private def known(fact: Option[String]): String = fact.getOrElse("unknown")

  private def list(title: String, items: Option[Seq[String]]): String =
    items.filter(_.nonEmpty).fold("")(_.mkString(s"$title: ", ", ", ""))
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
