package io.interlock.spark.procedures

import java.sql.Timestamp

import scala.concurrent.duration._

import io.interlock.coordinator.TableLog
import io.interlock.rules.ClaimScope
import io.interlock.spark.claims.Claims
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.history.NamedTable
import io.interlock.spark.predicates.PartitionScope
import io.interlock.spark.properties.{OtherCoordinator, PolicyDigest}
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.interlock.judging.PartitionValues
import org.apache.spark.sql.delta.interlock.log.Author
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}

/** Claims a table, or partitions of it, for the session that calls. */
private[procedures] object ClaimProcedure extends InterlockProcedure {
  private val Longest = 7 * 24 * 60
  private val minutes = ProcedureParameter
    .in("minutes", DoubleType)
    .comment("after this time the claim ends by itself; 60 by default")
    .defaultValue("60")
    .build()

  override val name: String = "claim"
  override val parameters: Array[ProcedureParameter] =
    Array(Parameters.Table, Parameters.Partition, minutes)
  override val outputType: StructType =
    new StructType().add("claim", StringType).add("until", TimestampType)
  override val description: String =
    "Lets commits of other sessions wait that would make a job of this session lose."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val time = arguments.number(minutes.name).filter(time => time > 0 && time <= Longest)
      .getOrElse(throw InterlockException.invalidArgument(
        "the minutes",
        arguments.number(minutes.name).fold("NULL")(_.toString),
        s"a number above 0 and at most $Longest"
      ))
    val table = NamedTable.load(session, arguments.table, name)
    val now = NamedTable.snapshot(session, table, name)
    val properties = now.metadata.configuration
    OtherCoordinator
      .refuse(table.name(), properties, now.protocol.readerAndWriterFeatureNames)
    val policy = PolicyDigest.enforced(table.name(), properties)
      .getOrElse(throw InterlockException.policyRequired("A claim", table.name()))
    val partition = values(session, table.name(), now, arguments.partition)
    val by = Author.of(session).asClaimant(session)
    session.conf.set(Claims.SessionConf, by.session)
    val queue = Coordinators.queue(session, now.deltaLog, properties, now.metadata.id)
    val claim = TableClaims.of(now, table.name()).take(
      by,
      isOfSession = true,
      ClaimScope(None, partition.toSeq),
      policy,
      (time * 60 * 1000).toLong.millis,
      Claims.patience(by.session)
    )(grant => queue.fold(grant)(_.between(grant)))
    Iterator(Row(claim.id, claim.until.map(new Timestamp(_)).orNull))
  }

  /** Values of partition columns in the form in which partitions are compared. */
  private def values(
      session: SparkSession,
      table: String,
      now: Snapshot,
      asked: Map[String, Option[String]]
  ): Option[Map[String, String]] = {
    val columns = now.metadata.partitionSchema
    PartitionScope.predicate(session, table, columns, asked).map { _ =>
      val resolver = session.sessionState.conf.resolver
      val named = asked.flatMap { case (name, value) =>
        columns.find(column => resolver(column.name, name)).map(_.name -> value.orNull)
      }
      new PartitionValues(session, columns).normal(named).getOrElse(
        throw InterlockException.invalidArgument("a partition's value", "empty", "a value or NULL")
      )
    }
  }
}

private[procedures] object ReleaseProcedure extends InterlockProcedure {
  private val claim =
    ProcedureParameter.in("claim", StringType).comment("what `claim` has returned").build()

  override val name: String = "release"
  override val parameters: Array[ProcedureParameter] = Array(claim)
  override val outputType: StructType = new StructType().add("released", BooleanType)
  override val description: String = "Ends a claim of this application."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val id = arguments.needed(claim.name, "the claim", "the id of a claim")
    Iterator(Row(Claims.release(id)))
  }
}

private[procedures] object ClaimsProcedure extends InterlockProcedure {
  override val name: String = "claims"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table)
  override val outputType: StructType = new StructType()
    .add("claim", StringType)
    .add("owner", StringType)
    .add("class", StringType)
    .add("partitions", ArrayType(MapType(StringType, StringType)))
    .add("since", TimestampType)
    .add("until", TimestampType)
  override val description: String =
    "The claims on a table in the order of their time; one without `until` waits for another."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val table = NamedTable.load(session, arguments.table, name)
    val claims = TableClaims.of(NamedTable.snapshot(session, table, name), table.name()).all()
    for (claim <- claims.iterator; scope <- claim.scope.iterator) yield Row(
      claim.id,
      claim.owner,
      scope.operationClass.map(_.name).orNull,
      scope.partitions,
      new Timestamp(claim.since),
      claim.until.map(new Timestamp(_)).orNull
    )
  }
}

private object TableClaims {
  def of(now: Snapshot, table: String): Claims = new Claims(log(now), now.metadata.id, table)

  def log(now: Snapshot): TableLog =
    TableLog(now.deltaLog.logPath, now.deltaLog.newDeltaHadoopConf())
}
