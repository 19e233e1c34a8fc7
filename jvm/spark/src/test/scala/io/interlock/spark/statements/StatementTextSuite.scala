package io.interlock.spark.statements

import io.delta.sql.parser.DeltaSqlParser
import io.interlock.spark.compaction.CompactionKind
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkSqlParser
import org.apache.spark.sql.execution.command.ExplainCommand

/** The texts of Interlock's statements and clauses, without a session. */
class StatementTextSuite extends munit.FunSuite {
  private val spark = new SparkSqlParser
  private val delta = new DeltaSqlParser(spark)

  private def compaction(sql: String): Option[CompactionKind] = CompactText.parse(delta, sql).map {
    case explained: ExplainCommand => explained.logicalPlan
    case plan => plan
  }.collect { case CompactStatement(_, _, kind) => kind }

  private def parts(sql: String): Seq[String] =
    CompactText.parse(delta, sql).toSeq.flatMap(_.toString.split("[^A-Za-z0-9_`.]+"))

  test("compactions") {
    for {
      kind <- CompactionKind.all
      table <- Seq(
        "t",
        "db.t",
        "compact",
        "db.compact",
        "a.`b c`.compact",
        "delta.`/x/y`",
        "IDENTIFIER('db.t')",
        "IDENTIFIER(concat('a', '.b'))"
      )
      partition <- Seq("", " PARTITION (p = 1)", " PARTITION (p = ')', q = 'COMPACT')")
      before <- Seq("", "EXPLAIN ", "EXPLAIN EXTENDED ")
      end <- Seq("", ";", " ; ;")
    } {
      val sql = s"${before}alter table $table$partition ${kind.words.mkString(" ").toLowerCase}$end"
      assertEquals(compaction(sql), Some(kind), sql)
    }
  }

  test("a partition and a table with their own names are kept") {
    val found = parts("ALTER TABLE db.compact PARTITION (day = 'x') COMPACT MAJOR")
    for (name <- Seq("compact", "day", "x")) assert(found.contains(name), found)
  }

  test("other statements are not compactions") {
    for (
      sql <- Seq(
        "ALTER TABLE compact ADD COLUMNS (major INT)",
        "ALTER TABLE t RENAME TO compact",
        "OPTIMIZE t",
        "SELECT 'ALTER TABLE t COMPACT MAJOR'",
        "DESCRIBE ALTER TABLE t COMPACT MAJOR",
        "ALTER TABLE",
        ""
      )
    ) assertEquals(CompactText.parse(delta, sql), None, sql)
  }

  test("what begins like a compaction has to end like one") {
    for (end <- Seq("COMPACT", "COMPACT FULL", "COMPACT MINOR MAJOR", "MERGE", "MERGE FILES"))
      assertEquals(
        intercept[InterlockException](compaction(s"ALTER TABLE t $end")).getCondition,
        "INTERLOCK_COMPACT_SYNTAX",
        end
      )
  }

  private def plan(sql: String): Option[LogicalPlan] = new TemporalText(sql, delta).plan

  /** The plan of a text with a clause is that of the text with a call of a function. */
  private def check(clause: String, call: String): Unit =
    assertEquals(plan(clause).map(_.toString), Some(spark.parsePlan(call).toString), clause)

  test("ranges of versions and times") {
    check(
      "SELECT * FROM t VERSION BETWEEN 1 AND 2",
      "SELECT * FROM (table_between_versions('t', 1, 2))"
    )
    check(
      "SELECT * FROM db.t FOR SYSTEM_VERSION BETWEEN 1 + 1 AND 3 x WHERE x.id BETWEEN 5 AND 6",
      "SELECT * FROM (table_between_versions('db.t', 1 + 1, 3)) x WHERE x.id BETWEEN 5 AND 6"
    )
    check(
      "SELECT * FROM IDENTIFIER('t') TIMESTAMP BETWEEN '2026-01-01' AND current_timestamp()",
      "SELECT * FROM (table_between_timestamps('t', '2026-01-01', current_timestamp()))"
    )
  }

  test("a range ends behind the AND that ends its first expression") {
    check(
      "SELECT * FROM t VERSION BETWEEN CASE WHEN a AND b THEN 1 END AND 2, u VERSION BETWEEN 3 AND 4",
      "SELECT * FROM (table_between_versions('t', CASE WHEN a AND b THEN 1 END, 2)), " +
        "(table_between_versions('u', 3, 4))"
    )
  }

  test("a computed version") {
    check(
      "SELECT * FROM t VERSION AS OF get_latest_version('t') - 1 WHERE id = 2",
      "SELECT * FROM (table_at_version('t', get_latest_version('t') - 1)) WHERE id = 2"
    )
    assertEquals(plan("SELECT * FROM t VERSION AS OF 3"), None)
    assertEquals(plan("SELECT * FROM t VERSION AS OF '3'"), None)
  }

  test("texts without a clause after a relation") {
    for (
      sql <- Seq(
        "SELECT version BETWEEN 1 AND 2 FROM t",
        "SELECT * FROM t WHERE version BETWEEN 1 AND 2",
        "SELECT * FROM t JOIN u VERSION BETWEEN",
        "SELECT 'FROM t VERSION BETWEEN 1 AND 2'"
      )
    ) assertEquals(plan(sql), None, sql)
  }

  test("a common table expression has no versions") {
    val error = intercept[InterlockException](
      plan("WITH c AS (SELECT 1) SELECT * FROM c VERSION BETWEEN 1 AND 2")
    )
    assertEquals(error.getCondition, "INTERLOCK_RANGE_NEEDS_TABLE")
  }
}
