package io.interlock.spark.audit

import io.interlock.rules.advice.{Advice, Rejection}
import io.interlock.rules.{ConflictKind, OperationClass, Policy}
import io.interlock.spark.audit.ConflictRecord.Fact
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** A version that a commit met.
  *
  * @param operation
  *   as the table's history calls it
  */
final case class WinningVersion(
    version: Long,
    operation: Option[String],
    operationClass: Option[String],
    attempt: Option[String]
) {
  def text: String =
    s"version $version (${operation.getOrElse("unknown")}${operationClass.fold("")(", " + _)})"
}

/** An audit record told: what met, by which rule, and what would have let both through.
  *
  * @param partitionColumns
  *   those that the table has now
  * @param met
  *   the winners of the record that the log still has
  * @param policies
  *   those that advice chooses from
  */
final case class Explanation(
    record: ConflictRecord,
    partitionColumns: Seq[String],
    met: Seq[WinningVersion],
    policies: Seq[Policy]
) {
  private val policy =
    record.text(Fact.Policy).flatMap(name => policies.find(_.name == name))

  private val advice: Option[Advice] =
    record.text(Fact.Kind).flatMap(ConflictKind.byName).filter(_ => record.isRejected).map {
      kind =>
        val rejection = Rejection(
          kind,
          policy = record.text(Fact.Policy).getOrElse(""),
          earlier = record.text(Fact.EarlierClass).flatMap(OperationClass.byName),
          later = record.text(Fact.LaterClass).flatMap(OperationClass.byName),
          partitionColumns,
          predicate = record.text(Fact.Predicate),
          undecided = record.text(Fact.Undecided).nonEmpty
        )
        Advice.of(rejection, policies)
    }

  /** By [[Explanation.schema]]. */
  def toRow: Row = Row.fromSeq(record.toRow.toSeq ++ Seq(
    policy.map(_.source).orNull,
    advice.toSeq.flatMap(_.policies),
    advice.toSeq.flatMap(_.policiesByFiles),
    advice.toSeq.flatMap(_.policiesByRows),
    advice.map(_.layout).orNull,
    advice.map(found => Boolean.box(found.retryHelps)).orNull,
    text
  ))

  /** All of it, for people. */
  def text: String =
    (if (record.isRejected) rejected else rebased).filter(_.nonEmpty).mkString("\n")

  private def job: String = {
    val operation = record.text(Fact.LaterOperation).getOrElse("A job")
    s"$operation${record.text(Fact.LaterClass).fold("")(name => s" ($name)")}"
  }

  private def rejected: Seq[String] = {
    val read = record.long(Fact.ReadVersion).fold("")(version => s" read version $version and")
    val winner = record.winners.headOption.fold("another commit")(version =>
      met.find(_.version == version).getOrElse(recorded(version)).text
    )
    Seq(
      s"$job$read lost against $winner.",
      byRule,
      "Where they met: " + record.text(Fact.Scope).getOrElse("the whole table") + ".",
      list("Files", record.texts(Fact.Files)),
      list("Rows", record.texts(Fact.Rows)),
      record.text(Fact.Predicate).fold("")(predicate => s"Predicate: $predicate"),
      advice.fold("")(underOthers),
      advice.fold("")(found => s"Layout: ${found.layout}"),
      advice.fold("")(found => s"Run it again? ${found.retry}"),
      record.long(Fact.Millis).fold("")(millis =>
        s"Lost: $millis ms since it began, and ${record.long(Fact.Bytes).getOrElse(0L)} bytes of " +
          "data files."
      ),
      s"By ${who(Fact.User)}, application ${who(Fact.Application)}, session ${who(Fact.Session)}."
    )
  }

  /** The winner where the log has it no more. */
  private def recorded(version: Long) = WinningVersion(
    version,
    record.text(Fact.EarlierOperation),
    record.text(Fact.EarlierClass),
    record.text(Fact.WinnerAttempt)
  )

  private def byRule: String = record.text(Fact.Rule) match {
    case Some(rule) =>
      val why = record.text(Fact.Why).fold("")(": " + _)
      s"Policy ${who(Fact.Policy)}, rule $rule$why.$source"
    case None =>
      s"Delta's own check under every policy, here ${who(Fact.Policy)}: ${who(Fact.Kind)}."
  }

  private def source: String = policy.fold("")(found => s" Source: ${found.source}.")

  private def underOthers(found: Advice): String = {
    val all = Seq(
      found.policies -> "",
      found.policiesByRows -> " if they touch other rows",
      found.policiesByFiles -> " if they touch other files"
    )
    val under = all.collect {
      case (names, condition) if names.nonEmpty =>
        names.mkString(", ") + condition
    }
    if (under.isEmpty) "" else under.mkString("Both succeed under ", "; ", ".")
  }

  private def rebased: Seq[String] = {
    val verdicts = record.text(Fact.Verdict).toSeq.flatMap(_.split(','))
    val passed = record.winners.zipAll(verdicts, 0L, "passed").map { case (version, verdict) =>
      val found = met.find(_.version == version).fold(s"version $version")(_.text)
      s"  over $found: $verdict"
    }
    val read = record.long(Fact.ReadVersion).fold("")(version => s" It had read version $version.")
    Seq(
      s"$job made version ${who(Fact.Version)}.$read It met other commits and passed them:"
    ) ++ passed ++ Seq(
      s"Policy ${who(Fact.Policy)}, rule ${who(Fact.Rule)}.$source",
      record.text(Fact.Scope).fold("")(scope => s"Where they met: $scope."),
      record.long(Fact.Millis).fold("")(millis =>
        s"It took $millis ms and saved ${record.long(Fact.Bytes).getOrElse(0L)} bytes of data files."
      )
    )
  }

  private def who(fact: String): String = record.text(fact).getOrElse("unknown")

  private def list(title: String, items: Seq[String]): String =
    if (items.isEmpty) "" else s"$title: ${items.mkString(", ")}"
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
