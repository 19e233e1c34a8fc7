package org.apache.spark.sql.delta.interlock.judging

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.InSet
import org.apache.spark.sql.delta.DeltaTableReadPredicate
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.interlock.DeltaSuite
import org.apache.spark.sql.types.StructType

class PartitionPredicatesSuite extends DeltaSuite {
  private lazy val predicates = {
    val schema = StructType.fromDDL("p INT, d DATE, s STRING, c STRING COLLATE UTF8_LCASE, id INT")
    val partitions = Seq("p", "d", "s", "c")
    val metadata = Metadata(schemaString = schema.json, partitionColumns = partitions)
    new PartitionPredicates(
      spark,
      metadata,
      new PartitionValues(spark, metadata.partitionSchema)
    )
  }

  private def named(sql: String*): Option[Seq[Map[String, String]]] = predicates.named(
    DeltaTableReadPredicate(sql.map(spark.sessionState.sqlParser.parseExpression))
  )

  private def check(sql: String*)(partitions: Map[String, String]*): Unit =
    test(sql.mkString(" AND "))(assertEquals(named(sql: _*), Some(partitions)))

  check("p = 1")(Map("p" -> "1"))
  check("1 = p")(Map("p" -> "1"))
  check("p = 1 OR p = 2 AND s = 'x'")(Map("p" -> "1"), Map("p" -> "2", "s" -> "x"))
  check("p IN (1, 2)", "s = 'x'")(Map("p" -> "1", "s" -> "x"), Map("p" -> "2", "s" -> "x"))
  check("p IN (1, NULL, 2)", "p = 2")(Map("p" -> "2"))
  check("d = '2026-01-01'")(Map("d" -> "2026-01-01"))
  check("d <=> NULL")(Map("d" -> null))
  check("d IS NULL")(Map("d" -> null))
  check("p = 1", "d > '2026-01-01'")(Map("p" -> "1"))
  check("p = 1", "rand() < 0.5")(Map("p" -> "1"))
  check("p = NULL")()

  for (
    sql <- Seq("p > 1", "p = 1 OR s > 'x'", "p + 1 = 2", "id = 1", "c = 'x'", "s = ''", "NOT p = 1")
  ) test(s"$sql selects partitions that it does not name")(assertEquals(named(sql), None))

  test("a long list of values, as the optimizer writes it") {
    val list = InSet(UnresolvedAttribute("p"), Set(1, 2, null))
    assertEquals(
      predicates.named(DeltaTableReadPredicate(Seq(list))),
      Some(Seq(Map("p" -> "1"), Map("p" -> "2")))
    )
  }

  test("no predicate selects all")(assertEquals(named(), None))
}
