package io.interlock.coordinator.postgres

import java.io.{File, IOException}
import java.sql.SQLException

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import io.delta.storage.LogStore
import io.interlock.coordinator._
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** The commands of `interlock coordinator`, called by the Python package: options in, JSON out. */
object Admin {
  private val mapper = new ObjectMapper()

  /** Runs one command.
    *
    * @param command
    *   init, upgrade or status
    * @param options
    *   the keys of [[PostgresSettings]]
    * @return
    *   a JSON object with the command's results, or with `condition` and `parameters` of an error
    */
  def run(command: String, options: java.util.Map[String, String]): String =
    asJson(options.asScala.toMap)(execute(command, _))

  /** Makes the database agree with the log of a table, as [[Repair]] does.
    *
    * @param options
    *   the keys of [[PostgresSettings]], and `table`, the table's folder
    * @param conf
    *   with the settings of the table's file system
    * @param logStores
    *   Delta's LogStore of a log that is not on a local disk
    * @return
    *   a JSON object as that of `run`
    */
  def repair(
      options: java.util.Map[String, String],
      conf: Configuration,
      logStores: TableLog => LogStore
  ): String = {
    val (table, database) = options.asScala.toMap.partition(_._1 == "table")
    asJson(database)(repair(_, table("table"), conf, logStores))
  }

  private def asJson(options: Map[String, String])(work: Target => Map[String, Any]): String = {
    val result: Map[String, Any] =
      try {
        val settings = PostgresSettings.ofOptions(options)
        val pool = new ConnectionPool(settings)
        try work(new Target(settings, pool))
        catch { case e: SQLException => throw Refusals.of(settings, e) }
        finally pool.close()
      } catch {
        case e: CoordinatorException =>
          Map[String, Any]("condition" -> e.condition, "parameters" -> e.parameters.asJava)
      }
    mapper.writeValueAsString(result.asJava)
  }

  final private class Target(val settings: PostgresSettings, val pool: ConnectionPool) {
    val database = new Database(pool)
  }

  private def execute(command: String, target: Target): Map[String, Any] =
    command match {
      case "init" => migrate(target)
      case "upgrade" => requireSchema(target); migrate(target)
      case "status" => status(target)
    }

  private def migrate(target: Target): Map[String, Any] = {
    val done = target.pool.fresh(Migrations.run)
    Map("version" -> Migrations.newest, "applied" -> done.map(_.name).asJava)
  }

  private def requireSchema(target: Target): Unit =
    if (version(target).contains(0))
      throw new SQLException("there is no schema: run interlock coordinator init", "3F000")

  private def version(target: Target): Option[Int] = target.pool.fresh(Migrations.version)

  private def status(target: Target): Map[String, Any] = {
    val found = version(target)
    val tables = if (found.contains(0)) Seq.empty else target.database.tables()
    Map(
      "database" -> target.settings.place,
      "version" -> found.map(Int.box).orNull,
      "newest" -> Migrations.newest,
      "tables" -> tables.map(described).asJava
    )
  }

  private def described(row: TableRow) = Map[String, Any](
    "path" -> row.path,
    "tableId" -> row.tableId.orNull,
    "epoch" -> row.epoch,
    "sequence" -> row.sequence,
    "head" -> row.head,
    "published" -> row.published,
    "inLog" -> inLog(row).map(Long.box).orNull,
    "updated" -> row.updated
  ).asJava

  /** The last version in the table's log that follows the published ones without a gap; none if the
    * log is not on a disk of this machine.
    */
  private def inLog(row: TableRow): Option[Long] = {
    val log = TableLog(new Path(row.path), new Configuration())
    def file(path: Path): File = new File(path.toUri.getPath)
    Option.when(LogFolder.isLocal(log) && file(log.path).isDirectory) {
      (row.published + 1 to row.head).takeWhile(v => file(log.file(v)).exists).lastOption
        .getOrElse(row.published)
    }
  }

  private def repair(
      target: Target,
      table: String,
      conf: Configuration,
      logStores: TableLog => LogStore
  ): Map[String, Any] =
    try {
      val folder = new Path(table)
      // The spelling that sessions use, which is the table's key in the database.
      val log =
        TableLog(new Path(folder.getFileSystem(conf).makeQualified(folder), "_delta_log"), conf)
      val context =
        new StoreContext(target.settings, target.database, Publisher.ratified(logStores))
      val done = new Repair(context).run(log, OrphanFiles.LongestTransaction)
      Map(
        "table" -> log.path.getParent.toString,
        "head" -> done.head,
        "epoch" -> done.epoch,
        "published" -> done.published,
        "adopted" -> done.adopted,
        "newEpoch" -> done.newEpoch,
        "swept" -> done.swept.map(_.getName).asJava
      )
    } catch {
      case told @ (_: CoordinatorException | _: SQLException) => throw told
      case failed if Causes.of(failed).exists(isOfStorage) =>
        throw Refusals.notRepaired(table, failed)
    }

  /** Also if the client of the file system is not on the class path, or not all of it. */
  private def isOfStorage(failed: Throwable): Boolean = failed match {
    case _: IOException | _: ClassNotFoundException | _: LinkageError => true
    case _ => false
  }
}
