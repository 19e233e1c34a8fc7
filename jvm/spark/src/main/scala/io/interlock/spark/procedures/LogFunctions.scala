package io.interlock.spark.procedures

import java.util

import io.interlock.spark.history.NamedTable
import io.interlock.spark.ranges.FunctionArguments
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownLimit}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{Row, SparkSession, SparkSessionExtensions}

/** The procedures that read a table's log, as functions for FROM: `interlock_history('db.t')` has the
  * parameters and the rows of `CALL interlock.history('db.t')`.
  *
  * The arguments are constant expressions. They are evaluated, and the table is looked up, when a
  * query is analysed; the log is read when it is optimised, which is at each run.
  */
object LogFunctions {
  private val procedures =
    Seq(BlocksProcedure, ConflictsProcedure, FilesProcedure, HistoryProcedure, VersionsProcedure)

  def register(extensions: SparkSessionExtensions): Unit = procedures.foreach { procedure =>
    val name = s"interlock_${procedure.name}"
    val info = new ExpressionInfo(getClass.getName, null, name, procedure.description, "")
    extensions.injectTableFunction((FunctionIdentifier(name), info, relation(procedure, name, _)))
  }

  private def relation(
      procedure: LogProcedure,
      name: String,
      values: Seq[Expression]
  ): LogicalPlan = {
    val parameters = procedure.parameters.toSeq
    val signature = FunctionSignature(parameters.map { parameter =>
      InputParameter(parameter.name, Option(parameter.defaultValue).map(_ => Literal(null)))
    })
    val bound = NamedArguments.inOrder(signature, values, name)
      .zip(parameters).map { case (value, parameter) =>
        FunctionArguments.of(s"the ${parameter.name}", value, parameter.dataType)
      }
    val arguments = new Arguments(parameters.map(_.name), InternalRow.fromSeq(bound))
    val session = SparkSession.active
    val table = NamedTable.load(session, arguments.table, name)
    val call = values.map(_.sql).mkString(s"$name(", ", ", ")")
    val rows = LogRows(call, table.path.toString, procedure.outputType) { () =>
      procedure.read(session, table, name, arguments)
    }
    DataSourceV2Relation.create(rows, None, None)
  }
}

/** What a call gives, to a query that reads it. */
final private case class LogRows(call: String, path: String, override val schema: StructType)(
    read: () => Iterator[Row]
) extends Table
    with SupportsRead {
  override def name(): String = call

  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new SupportsPushDownLimit {
      private var most = Int.MaxValue

      override def pushLimit(limit: Int): Boolean = {
        most = limit
        true
      }

      override def build(): Scan = LocalRows.of(schema, read().take(most))
    }
}
