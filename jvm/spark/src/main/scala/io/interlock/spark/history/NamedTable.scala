package io.interlock.spark.history

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.predicates.PartitionScope
import io.interlock.spark.properties.{AnyDeltaTable, TablePolicy}
import io.interlock.spark.text.SqlText
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedTable}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.judging.{PartitionPredicates, PartitionValues}
import org.apache.spark.sql.delta.{ResolveDeltaPathTable, Snapshot}

/** Delta tables by name, for statements, functions and procedures that read a table's log. */
object NamedTable {

  /** @param name
    *   as SQL has it, `db.t` or "delta.`/path`", or a path: `/path`, `s3://bucket/path`
    * @throws AnalysisException
    *   as Spark raises it for a name that is not there or is a view's
    * @throws InterlockException
    *   INTERLOCK_NOT_A_DELTA_TABLE
    */
  def load(session: SparkSession, name: String, statement: String): DeltaTableV2 = {
    val analyzer = session.sessionState.analyzer
    // Inside a view this looks where the view does, unlike an analysis of its own.
    val found = analyzer.ResolveRelations(UnresolvedTable(parts(name), statement))
    ResolveDeltaPathTable(session)(found) match {
      case ResolvedTable(_, _, AnyDeltaTable(table), _) => table
      case ResolvedTable(_, _, other, _) =>
        throw InterlockException.notADeltaTable(statement, other.name())
      case missing =>
        analyzer.checkAnalysis(missing)
        throw InterlockException.notADeltaTable(statement, name)
    }
  }

  /** A name that [[load]] takes, for a SQL text. */
  def inSql(name: String): String = SqlText.table(parts(name))

  private def parts(name: String): Seq[String] =
    if (name.startsWith("/") || name.matches("\\w[\\w+.-]*:/.*")) Seq("delta", name)
    else CatalystSqlParser.parseMultipartIdentifier(name)

  /** The conflict policy of a table. */
  def policy(session: SparkSession, name: String, statement: String): Option[String] = {
    val now = snapshot(session, load(session, name, statement), statement)
    TablePolicy.named(now.metadata.configuration)
  }

  /** The versions of a table, from its log. */
  private[spark] def history(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      partition: Map[String, Option[String]]
  ): VersionHistory = {
    val now = snapshot(session, table, statement)
    val columns = now.metadata.partitionSchema
    val scope = PartitionScope.predicate(session, table.name(), columns, partition)
    val values = new PartitionValues(session, columns)
    val selects = scope.map(new PartitionPredicates(session, now.metadata, values).of)
    new VersionHistory(now, selects.map(inScope => values.of(_, _).forall(inScope)))
  }

  /** The whole table as it is now.
    *
    * @throws InterlockException
    *   INTERLOCK_NOT_A_DELTA_TABLE, INTERLOCK_NOT_A_WHOLE_TABLE
    */
  private[spark] def snapshot(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String
  ): Snapshot = {
    PartitionScope.refusePath(session, table, statement)
    val found = table.update()
    if (found.version < 0) {
      val files = table.path.getFileSystem(table.deltaLog.newDeltaHadoopConf())
      if (files.exists(table.path)) throw InterlockException.notADeltaTable(statement, table.name())
      throw InterlockException
        .notADeltaTable(statement, table.name(), s"There is nothing at ${table.path}")
    }
    found
  }
}
