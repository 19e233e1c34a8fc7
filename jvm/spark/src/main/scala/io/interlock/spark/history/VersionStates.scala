package io.interlock.spark.history

import java.sql.Timestamp

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.Try

import io.interlock.spark.commits.Operations
import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.interlock.log.CommitLog

/** Which version's rows a version has: its own if it changed data, its predecessor's if not, after a
  * RESTORE those of the version that it restored. RESTORE marks every file it brings back as a
  * change of data, also where it only undoes a compaction.
  *
  * @param log
  *   of the table
  * @param changes
  *   of the table's versions, newest first; read as far as needed
  */
final private[spark] class VersionStates(log: CommitLog, changes: Iterator[VersionChange]) {
  import VersionStates._

  private val known = mutable.LongMap.empty[Fact]

  /** Whether a version logically added or removed at least one row. */
  def changesData(change: VersionChange): Boolean =
    change.files.changesData &&
      restoredBy(factOf(change)).forall(to => state(to) != state(change.version - 1))

  /** A RESTORE's rows cannot be told where rows moved between files since the version restored. */
  def rowsMovedSinceRestored(change: VersionChange): Boolean = {
    val restored = factOf(change).restores
    restored.nonEmpty && restoredBy(factOf(change)).forall { to =>
      (to + 1 until change.version).exists(version => fact(version).forall(_.rewrites))
    }
  }

  @tailrec
  private def state(version: Long): Long = fact(version) match {
    case None => version // older than the log
    case Some(found) =>
      restoredBy(found) match {
        case Some(restored) => state(restored)
        case None if found.changesData => version
        case None => state(version - 1)
      }
  }

  /** None for other statements, and where the log no longer tells. */
  private def restoredBy(fact: Fact): Option[Long] =
    fact.restores.flatMap {
      case Target.Version(version) => Some(version).filter(_ < fact.version)
      case Target.Time(millis) =>
        Iterator.iterate(fact.version - 1)(_ - 1).map(this.fact).takeWhile(_.nonEmpty).flatten
          .find(_.timestamp.exists(_ <= millis))
          .map(_.version)
    }

  private def fact(version: Long): Option[Fact] = {
    while (!known.contains(version) && changes.hasNext) {
      val change = changes.next()
      known(change.version) = factOf(change)
    }
    known.get(version)
  }

  private def factOf(change: VersionChange): Fact = Fact(
    change.version,
    log.timestamp(change.version, change.info),
    change.files.changesData,
    change.files.rewrites,
    Target.of(change)
  )
}

private[spark] object VersionStates {

  /** What is kept of a version.
    *
    * @param restores
    *   what it restored, as the statement named it
    */
  final private case class Fact(
      version: Long,
      timestamp: Option[Long],
      changesData: Boolean,
      rewrites: Boolean,
      restores: Option[Target]
  )

  sealed private trait Target

  private object Target {
    final case class Version(number: Long) extends Target
    final case class Time(millis: Long) extends Target

    def of(change: VersionChange): Option[Target] =
      change.info.filter(_.operation == DeltaOperations.OP_RESTORE).flatMap { info =>
        val parameters = Operations.unquoted(info.operationParameters)
        def parsed(key: String)(parse: String => Target) =
          parameters.get(key).flatMap(text => Try(parse(text)).toOption)
        parsed("version")(text => Version(text.toLong))
          // Delta writes it in the time zone of the JVM.
          .orElse(parsed("timestamp")(text => Time(Timestamp.valueOf(text).getTime)))
      }
  }
}
