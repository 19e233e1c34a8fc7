package io.interlock.coordinator.postgres

import java.io.File
import java.nio.file.Paths
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
    *   init, upgrade, status or repair
    * @param options
    *   the keys of [[PostgresSettings]]; for repair also `table`, a table's folder
    * @return
    *   a JSON object with the command's results, or with `condition` and `parameters` of an error
    */
  def run(command: String, options: java.util.Map[String, String]): String = {
    val all = options.asScala.toMap
    val result: Map[String, Any] =
      try {
        val settings = PostgresSettings.ofOptions(all - "table")
        val pool = new ConnectionPool(settings)
        try execute(command, all, new Target(settings, pool))
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

  private def execute(command: String, options: Map[String, String], target: Target) =
    command match {
      case "init" => migrate(target)
      case "upgrade" => requireSchema(target); migrate(target)
      case "status" => status(target)
      case "repair" => repair(target, options("table"))
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

  private def repair(target: Target, table: String): Map[String, Any] = {
    val log = TableLog(logPath(table), new Configuration())
    val context = new StoreContext(target.settings, target.database, Publisher.ratified(localOnly))
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
  }

  /** The log's path as the stores use it; a local path has its symbolic links resolved. */
  private def logPath(table: String): Path = {
    val path = new Path(table, "_delta_log")
    if (!QuickLocalFileSystem.isLocal(path)) path
    else {
      val folder = Paths.get(new Path(table).toUri.getPath).toFile.getCanonicalPath
      new Path(new Path("file", null, folder), "_delta_log")
    }
  }

  /** Publishes on local disks only: which LogStore an object store needs is known only to a
    * session, whose next commit publishes too.
    */
  private def localOnly: TableLog => LogStore = log =>
    throw Refusals.badPath(log, "only a writer of the table can publish there: commit to it")
}
