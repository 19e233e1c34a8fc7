package io.interlock.spark.properties

import java.util.concurrent.ConcurrentHashMap

import scala.util.Try
import scala.util.control.NonFatal

import io.interlock.rules.{MalformedPolicy, Policies, Policy, PolicyText}
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.text.SmallFile
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSession

/** The policies that this thread's session knows: those of Interlock, and those in settings
  * `spark.interlock.policies.<name>`. A setting's value is a policy's text if it has line breaks,
  * and otherwise the path of a file with the text, which is read once per process and has at most
  * 64 KiB.
  */
object SessionPolicies {

  /** The prefix of the keys, which go on with a policy's name. */
  val Prefix = "spark.interlock.policies."
  private val MostBytes = 64 << 10
  private val Name = "[A-Za-z][A-Za-z0-9_-]*".r
  private val files = new ConcurrentHashMap[String, String]

  def confKey(name: String): String = s"$Prefix$name"

  /** @throws InterlockException
    *   INTERLOCK_MALFORMED_POLICY
    */
  def byName(name: String): Option[Policy] =
    setting(confKey(name)).map(parse(name, _)).orElse(Policies.byName(name))

  def names: Seq[String] = Policies.names ++ own.sorted.diff(Policies.names)

  /** @throws InterlockException
    *   INTERLOCK_MALFORMED_POLICY
    */
  def all: Seq[Policy] = names.flatMap(byName)

  /** All policies except malformed ones, for texts that only list policies. */
  def readable: Seq[Policy] = names.flatMap(name => Try(byName(name)).toOption.flatten)

  /** The error for a name that no policy has. */
  def unknown(name: String): InterlockException = InterlockException.unknownPolicy(name, names)

  private def own: Seq[String] =
    settings.keys.filter(_.startsWith(Prefix)).map(_.stripPrefix(Prefix)).toSeq

  private def session: Option[SparkSession] =
    SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession)

  /** A single setting: every commit asks for one, so not all settings are read. */
  private def setting(key: String): Option[String] = session match {
    case Some(found) => found.conf.getOption(key)
    case None => Option(SparkEnv.get).flatMap(_.conf.getOption(key))
  }

  private def settings: Map[String, String] = session.map(_.conf.getAll)
    .orElse(Option(SparkEnv.get).map(_.conf.getAll.toMap))
    .getOrElse(Map.empty)

  private def parse(name: String, value: String): Policy =
    try {
      if (!Name.matches(name))
        throw new MalformedPolicy("The name must be of letters, digits, - and _.")
      if (Policies.names.contains(name))
        throw new MalformedPolicy("Interlock has a policy of this name; use another.")
      if (value.linesIterator.size > 1) PolicyText.parse(confKey(name), value, Some(name))
      else PolicyText.parse(value, files.computeIfAbsent(value, read), Some(name))
    } catch {
      case malformed: MalformedPolicy =>
        throw InterlockException(
          "INTERLOCK_MALFORMED_POLICY",
          "policy" -> name,
          "key" -> confKey(name),
          "problem" -> malformed.getMessage
        )
    }

  private def read(file: String): String =
    try {
      val path = new Path(file.trim)
      val fs = path.getFileSystem(
        session.fold(new Configuration)(_.sparkContext.hadoopConfiguration)
      )
      val found = fs.getFileStatus(path)
      SmallFile.read(fs, found, MostBytes) {
        throw new MalformedPolicy(
          s"$file has ${found.getLen} bytes, and a policy has at most $MostBytes."
        )
      }.getOrElse(throw new MalformedPolicy(s"$file is empty or no file."))
    } catch {
      case malformed: MalformedPolicy => throw malformed
      case NonFatal(error) => throw new MalformedPolicy(s"$file cannot be read: $error.")
    }
}
