package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession

/** The settings of a coordinator in the configuration with which Spark was started.
  *
  * @param values
  *   the values by the last words of their keys
  */
final case class CoordinatorSettings(name: String, values: Map[String, String]) {
  def isFileSystem: Boolean = name == CoordinatorSettings.FileSystem

  /** Without the values, which may lead to a password. */
  override def toString: String = s"CoordinatorSettings($name)"
}

object CoordinatorSettings {
  val Key = "interlock.coordinator"

  /** The coordinator of tables that name none: the file system of the log itself. */
  val FileSystem = "filesystem"

  /** The prefix of the keys, which go on with a coordinator's name and one of its settings. */
  val Prefix = "spark.interlock.coordinator."
  private val Name = "[A-Za-z][A-Za-z0-9_-]*".r

  /** @throws InterlockException
    *   INTERLOCK_UNKNOWN_COORDINATOR if Spark was started without a coordinator of that name;
    *   INTERLOCK_COORDINATOR_SETTING if the session has changed a setting: otherwise a user could,
    *   by SQL alone, send the password to another server, or any file as the password
    */
  def of(spark: SparkSession, name: String): CoordinatorSettings = {
    val prefix = s"$Prefix$name."
    val values = spark.sparkContext.getConf.getAllWithPrefix(prefix)
    val ofSession = spark.conf.getAll.collect {
      case (key, value) if key.startsWith(prefix) => key.stripPrefix(prefix) -> value
    }
    ofSession.toSeq.diff(values).sorted.headOption.foreach { case (key, _) =>
      throw InterlockException(
        "INTERLOCK_COORDINATOR_SETTING",
        "setting" -> (prefix + key),
        "problem" -> ("a session cannot say where passwords are sent: RESET it, and let the " +
          "administrator set it where Spark is started, in spark-defaults.conf or by --conf")
      )
    }
    val found = CoordinatorSettings(name, values.toMap)
    if (values.isEmpty && !found.isFileSystem)
      throw InterlockException(
        "INTERLOCK_UNKNOWN_COORDINATOR",
        "coordinator" -> name,
        "key" -> s"${prefix}url"
      )
    found
  }

  /** Refuses a text that is not a logical name, such as a URL, which would remain in the log. */
  def checkName(name: String): Unit = if (!Name.matches(name))
    throw InterlockException.invalidProperty(
      Key,
      "***",
      "a name of letters, digits, - and _, whose URL stands where Spark is started"
    )
}
