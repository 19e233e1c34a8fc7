package io.interlock.coordinator.postgres

import scala.concurrent.duration._

import io.interlock.coordinator.CoordinatorException

/** The settings of a coordinator's database. They hold no password: `credentials` reads it when a
  * connection is opened.
  *
  * @param name
  *   the coordinator's logical name
  * @param poolSize
  *   the maximum number of connections of one process
  * @param statementTimeout
  *   how long one call may take, and how long a thread waits for a connection
  * @param lockTimeout
  *   how long a call waits for another writer's lock
  * @param idleTimeout
  *   how long a connection may be unused before it is closed
  * @param unknownDeadline
  *   how long the database is asked for the outcome of a commit whose reply was lost
  */
final case class PostgresSettings private (
    name: String,
    private[postgres] val url: JdbcUrl,
    user: String,
    private[postgres] val credentials: CredentialProvider,
    poolSize: Int,
    statementTimeout: FiniteDuration,
    lockTimeout: FiniteDuration,
    idleTimeout: FiniteDuration,
    unknownDeadline: FiniteDuration
) {

  /** Host, port and database. */
  def place: String = url.place

  override def toString: String = s"PostgresSettings($name, $place, $user)"
}

object PostgresSettings {
  private val MostConnections = 64
  private val passwordKeys = Seq("passwordFile", "passwordVariable", "credentialProvider")
  private val keys = Seq("url", "user") ++ passwordKeys ++
    Seq("poolSize", "statementTimeout", "lockTimeout", "idleTimeout", "unknownDeadline")

  /** @param settings
    *   the settings under `spark.interlock.coordinator.<name>.`
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_SETTING, which names the key and never shows the value
    */
  def of(name: String, settings: Map[String, String]): PostgresSettings =
    new Reader(name, settings, key => s"spark.interlock.coordinator.$name.$key").read()

  /** The settings from options of the command line; errors name them `--like-this`. */
  private[postgres] def ofOptions(options: Map[String, String]): PostgresSettings =
    new Reader("coordinator", options, "--" + _.replaceAll("([A-Z])", "-$1").toLowerCase).read()

  final private class Reader(name: String, settings: Map[String, String], shown: String => String) {

    def read(): PostgresSettings = {
      settings.keys.toSeq.sorted.find(!keys.contains(_)).foreach { key =>
        val password = if (key == "password") "a password is given by file, never here; " else ""
        throw refused(key)(s"${password}the settings are ${keys.map(shown).mkString(", ")}")
      }
      PostgresSettings(
        name,
        JdbcUrl.parse(required("url")).fold(problem => throw refused("url")(problem), identity),
        required("user"),
        credentials,
        settings.get("poolSize").fold(4)(connections),
        duration("statementTimeout", 30.seconds),
        duration("lockTimeout", 10.seconds),
        duration("idleTimeout", 10.minutes),
        duration("unknownDeadline", 60.seconds)
      )
    }

    private def credentials: CredentialProvider =
      passwordKeys.filter(settings.contains) match {
        case Seq(key @ "passwordFile") => CredentialProvider.ofFile(settings(key), refused(key))
        case Seq(key @ "passwordVariable") =>
          CredentialProvider.ofEnvironment(settings(key), refused(key))
        case Seq(key) => CredentialProvider.ofClass(settings(key), refused(key))
        case _ => throw refused("passwordFile")(
            s"exactly one of ${passwordKeys.map(shown).mkString(", ")} says where the password is"
          )
      }

    private def required(key: String): String =
      settings.get(key).filter(_.nonEmpty).getOrElse(throw refused(key)("it is not set"))

    private def connections(text: String): Int =
      text.toIntOption.filter(1 to MostConnections contains _)
        .getOrElse(throw refused("poolSize")(s"it is a number from 1 to $MostConnections"))

    private def duration(key: String, default: FiniteDuration): FiniteDuration =
      settings.get(key).fold(default) { text =>
        PostgresSettings.duration(text)
          .getOrElse(throw refused(key)("it is a time such as 500ms, 30s, 10min or 1h, at most 1d"))
      }

    private def refused(key: String)(problem: String): CoordinatorException =
      new CoordinatorException(
        "INTERLOCK_COORDINATOR_SETTING",
        Map("setting" -> shown(key), "problem" -> problem)
      )
  }

  private val Duration = """(\d{1,9})\s*(ms|s|min|h|d)""".r
  private val shortest = 100.millis
  private val longest = 1.day

  private def duration(text: String): Option[FiniteDuration] = text match {
    case Duration(number, unit) =>
      val parsed = unit match {
        case "ms" => number.toLong.millis
        case "s" => number.toLong.seconds
        case "min" => number.toLong.minutes
        case "h" => number.toLong.hours
        case _ => number.toLong.days
      }
      Some(parsed).filter(found => found >= shortest && found <= longest)
    case _ => None
  }
}
