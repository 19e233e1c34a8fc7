package io.interlock.spark

import java.nio.file.{Path => LocalPath}

import scala.util.Try

import io.interlock.coordinator.{LinkProbe, StoreTrial}
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.{OtherCoordinator, TablePolicy}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession

/** What Interlock knows about the machine, a storage and a table's coordinator, and the repair of the
  * latter: for the Python package.
  */
object Maintenance {

  /** What is wrong with hard links in a folder of this machine; null if they work. */
  def linkFault(folder: String): String = LinkProbe.fault(LocalPath.of(folder)).orNull

  /** Lets writers race for files in a folder of any file system, and keeps the result.
    *
    * @return
    *   whether the default coordinator can commit there, what was found, and why the result could
    *   not be kept, null if it could
    */
  def storeTrial(session: SparkSession, folder: String): Array[Any] = {
    val (trial, kept) = Coordinators.trial(session, new Path(folder))
    Array(trial.passed, trial.found, kept.failed.map(_.toString).getOrElse(null))
  }

  /** Whether only [[storeTrial]] can show that the storage of a path makes no file twice; also if the
    * storage does not tell, as [[keptTrial]] then says.
    */
  def needsTrial(session: SparkSession, path: String): Boolean =
    Try(StoreTrial.isNeeded(session.sessionState.newHadoopConf(), new Path(path))).getOrElse(true)

  /** What the last [[storeTrial]] found about the storage of a path, with its time: null if none was
    * kept.
    */
  def keptTrial(session: SparkSession, path: String): Array[Any] =
    Try(StoreTrial.kept(session.sessionState.newHadoopConf(), new Path(path))).fold(
      untold => Array[Any](false, s"the storage does not tell: $untold"),
      _.map(trial => Array[Any](trial.passed, s"${trial.found} (${trial.at})")).orNull
    )

  /** Makes the database of a coordinator agree with a table's log.
    *
    * @param options
    *   of the database, and the table's folder, as `Admin.repair` has them
    * @return
    *   JSON, as that has it
    */
  def repairCoordinator(session: SparkSession, options: java.util.Map[String, String]): String =
    Coordinators.repair(session, options)

  /** Why the coordinator of a table takes no commits of this session, null if it does. */
  def coordinatorFault(session: SparkSession, table: String): String = {
    val loaded = NamedTable.load(session, table, "interlock doctor")
    val now = NamedTable.snapshot(session, loaded, "interlock doctor")
    val properties = now.metadata.configuration
    Try {
      OtherCoordinator.refuse(table, properties, now.protocol.readerAndWriterFeatureNames)
      TablePolicy.coordinatorOf(properties)
        .foreach(Coordinators.check(session, now.deltaLog, table, _))
    }.failed.map(_.getMessage).getOrElse(null)
  }
}
