package io.interlock.coordinator.postgres

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Path => LocalPath}

import scala.util.Try

import io.interlock.coordinator.{LogFolder, TableLog}
import org.apache.hadoop.fs.Path

/** Checks the path of a log, which is the key of the table in the database. */
private[postgres] object LogPaths {
  private val Longest = 2000
  private val NameNodePort = 8020
  private val Control = """\p{Cntrl}""".r
  private val Dots = """(?i)(\.|%2e){1,2}""".r

  /** @throws io.interlock.coordinator.CoordinatorException
    *   INTERLOCK_COORDINATOR_PATH for a path that may be another spelling of a table's path, that
    *   has control characters, or that holds a password
    */
  def check(log: TableLog): Unit = problem(log).foreach(found => throw Refusals.badPath(log, found))

  /** The log's path without symbolic links and without the default port of a NameNode, so that a
    * table has only one key.
    */
  def resolved(log: TableLog): TableLog = {
    val uri = log.path.toUri
    if (LogFolder.isLocal(log))
      Try(LocalPath.of(uri.getPath).toRealPath())
        .fold(_ => log, real => log.copy(path = new Path("file", null, real.toString)))
    else if (uri.getScheme == "hdfs" && uri.getPort == NameNodePort)
      log.copy(path =
        new Path("hdfs", uri.getAuthority.stripSuffix(s":$NameNodePort"), uri.getPath)
      )
    else log
  }

  private def problem(log: TableLog): Option[String] = {
    val text = log.path.toString
    val uri = log.path.toUri
    val user = Option(uri.getAuthority).filter(_.contains("@")).map(_.takeWhile(_ != '@'))
    if (Control.findFirstIn(text).isDefined) Some("it has control characters")
    else if (uri.getScheme == null || !log.path.isAbsolute) Some("it is not fully qualified")
    else if (uri.getPath.split("/").exists(Dots.matches)) Some("a part of it is . or ..")
    else if (log.path.getName != "_delta_log") Some("it is no folder _delta_log")
    else if (user.exists(_.contains(":"))) Some("it has a user and a password in it")
    else if (text.getBytes(UTF_8).length > Longest) Some(s"it is longer than $Longest bytes")
    else None
  }
}
