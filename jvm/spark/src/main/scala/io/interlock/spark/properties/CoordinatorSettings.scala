package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession

/** What the configuration that Spark was started with says of a coordinator.
  *
  * @param values
  *   by the last words of their keys
  */
final case class CoordinatorSettings(name: String, values: Map[String, String]) {
  def isFileSystem: Boolean = name == CoordinatorSettings.FileSystem

  /** Never the values: they may lead to a password. */
  override def toString: String = s"CoordinatorSettings($name)"
}

object CoordinatorSettings {

  /** The coordinator of tables that name none: the file system of the log itself. */
  val FileSystem = "filesystem"

  /** How often a commit is tried again after commits of other processes. */
  val MaxAttemptsConf = "spark.interlock.commit.maxAttempts"

  /** Keys go on with a coordinator's name and one of its settings. */
  val Prefix = "spark.interlock.coordinator."
  private val Name = "[A-Za-z][A-Za-z0-9_-]*".r

  /** @throws InterlockException
    *   INTERLOCK_UNKNOWN_COORDINATOR where Spark was started with none of that name;
    *   INTERLOCK_COORDINATOR_SETTING where the session has another setting: SQL alone would let a
    *   user send the password elsewhere, or any file as one
    */
  def of(spark: SparkSession, name: String): CoordinatorSettings = {
    val prefix = s"$Prefix$name."
    val values = spark.sparkContext.getConf.getAllWithPrefix(prefix)
    val ofSession = spark.conf.getAll.collect {
      case (key, value) if key.startsWith(prefix) => key.stripPrefix(prefix) -> value
    }
    ofSession.toSeq.diff(values).sorted.headOption.foreach { case (key, _) =>
      throw InterlockException.coordinatorOfSession(prefix + key)
    }
    val found = CoordinatorSettings(name, values.toMap)
    if (values.isEmpty && !found.isFileSystem)
      throw InterlockException.unknownCoordinator(name, s"${prefix}url")
    found
  }

  /** Refuses what cannot be a logical name, such as a URL, which would stand in the log for good. */
  def checkName(name: String): Unit = if (!Name.matches(name))
    throw InterlockException.invalidProperty(
      TableProperties.CoordinatorKey,
      "***",
      "a name of letters, digits, - and _, whose URL stands where Spark is started"
    )
}
