package io.interlock.spark.ranges

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{
  RelationTimeTravel,
  UnresolvedRelation,
  UnresolvedTableValuedFunction
}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedDataSource}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, quoteIdentifier}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.sources.DeltaDataSource._
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.delta.{DeltaTimeTravelSpec, UnresolvedPathBasedDeltaTableRelation}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Applies the options of a reader for ranges, of a table by name or by path, and for times after
  * the last commit of a table by path. For a table by name the catalog handles such times.
  *
  * Runs before resolution, in which Spark passes a path to Delta and refuses one with a time that
  * is not resolved yet, such as `current_timestamp()`.
  */
final class ReaderOptions(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case table: UnresolvedRelation =>
      ranged(table.options.asScala.toMap, table.isStreaming)(o => table.copy(options = o))
        .orElse(atTime(table))
        .getOrElse(table)
    case RelationTimeTravel(OfPath(path), Some(time), None) if !time.resolved =>
      UnresolvedTableValuedFunction(Seq(TableFunctions.AtTimestamp), Seq(Literal(path), time))
    case FromPath(source, path) =>
      ranged(source.options - PathKey, source.isStreaming)(
        UnresolvedPathBasedDeltaTableRelation(path, _)
      ).orElse(latest(source, path)).getOrElse(source)
  }

  private def ranged(options: Map[String, String], isStreaming: Boolean)(
      table: CaseInsensitiveStringMap => LogicalPlan
  ): Option[LogicalPlan] =
    RangeOptions.of(options, isStreaming).map { range =>
      val others = new CaseInsensitiveStringMap(range.others.asJava)
      TableRange(table(others), range.after, range.until)
    }

  /** The relation in the form of SQL's time travel, since Delta compares a time in an option with
    * the version that was read.
    */
  private def atTime(table: UnresolvedRelation): Option[LogicalPlan] = {
    val options = CaseInsensitiveMap(table.options.asScala.toMap)
    val others = new CaseInsensitiveStringMap((options - TIME_TRAVEL_TIMESTAMP_KEY).asJava)
    options.get(TIME_TRAVEL_TIMESTAMP_KEY)
      .filter(_ => !table.isStreaming && !options.contains(TIME_TRAVEL_VERSION_KEY))
      .map(time => RelationTimeTravel(table.copy(options = others), Some(Literal(time)), None))
  }

  private def latest(source: UnresolvedDataSource, path: String): Option[LogicalPlan] =
    for {
      time <- source.options.get(TIME_TRAVEL_TIMESTAMP_KEY)
      others = source.options - TIME_TRAVEL_TIMESTAMP_KEY
      if !source.isStreaming && !others.contains(TIME_TRAVEL_VERSION_KEY)
      spec = DeltaTimeTravelSpec(Some(Literal(time)), version = None, creationSource = None)
      table = DeltaTableV2(session, new Path(path), options = others - PathKey)
      version <- AfterLastCommit.version(table, spec.getTimestamp(conf).getTime)
    } yield source.copy(options =
      CaseInsensitiveMap(others + (TIME_TRAVEL_VERSION_KEY -> version.toString))
    )

  private val PathKey = "path"

  /** The name in SQL of a Delta table by its path. */
  private object OfPath {
    def unapply(plan: LogicalPlan): Option[String] = plan match {
      case UnresolvedRelation(parts @ Seq(format, _), _, _)
          if DeltaSourceUtils.isDeltaDataSourceName(format) =>
        Some(parts.map(quoteIdentifier).mkString("."))
      case _ => None
    }
  }

  /** A Delta read of one path. */
  private object FromPath {
    def unapply(plan: LogicalPlan): Option[(UnresolvedDataSource, String)] = plan match {
      case source @ UnresolvedDataSource(format, _, options, _, paths)
          if DeltaSourceUtils.isDeltaDataSourceName(format) =>
        Some(paths ++ options.get(PathKey)).collect { case Seq(path) => (source, path) }
      case _ => None
    }
  }
}
