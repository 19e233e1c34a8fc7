package io.interlock.coordinator.postgres

import scala.util.Try
import scala.util.matching.Regex

/** A database's address, split into its parts: only these parts reach the driver.
  *
  * @param hosts
  *   names or addresses with their ports
  */
final private[postgres] case class JdbcUrl(
    hosts: Seq[(String, Int)],
    database: String,
    parameters: Map[String, String]
) {

  /** The address for texts, without parameters. */
  def place: String =
    hosts.map { case (host, port) => s"$host:$port" }.mkString(",") + s"/$database"
}

private[postgres] object JdbcUrl {
  private val DefaultPort = 5432
  private val Form = """jdbc:postgresql://([^/?#@]+)/([\w.-]+)(?:\?([^#]*))?""".r
  private val Host = """([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?""".r

  /** The permitted parameters, with the values that they take. All others are refused, since some
    * of them load classes, run commands or write files.
    */
  private val allowed: Map[String, Regex] = Map(
    "ApplicationName" -> """[\w .:/-]{1,64}""".r,
    "connectTimeout" -> seconds,
    "loginTimeout" -> seconds,
    "socketTimeout" -> seconds,
    "ssl" -> "true|false".r,
    "sslmode" -> "disable|allow|prefer|require|verify-ca|verify-full".r,
    "sslrootcert" -> """/[^\s?%&]+""".r,
    "targetServerType" -> "any|primary|preferPrimary".r,
    "tcpKeepAlive" -> "true|false".r
  )

  private def seconds = """\d{1,5}""".r

  /** @return
    *   the parts, or a description of the mistake, which quotes no value of the URL
    */
  def parse(text: String): Either[String, JdbcUrl] = text match {
    case Form(hosts, database, query) =>
      for {
        places <- all(hosts.split(",", -1).toSeq)(host)
        pairs <- all(Option(query).toSeq.flatMap(_.split("&")))(parameter)
      } yield JdbcUrl(places, database, pairs.toMap)
    case _ => Left("it is not of the form jdbc:postgresql://host:port/database?parameter=value")
  }

  private def host(text: String): Either[String, (String, Int)] = text match {
    case Host(name, null) => Right(name -> DefaultPort)
    case Host(name, port) if Try(port.toInt).toOption.exists(1 to 65535 contains _) =>
      Right(name -> port.toInt)
    case _ => Left("it names no host and port, or holds a user")
  }

  private def parameter(text: String): Either[String, (String, String)] = {
    val (key, value) = (text.takeWhile(_ != '='), text.dropWhile(_ != '=').drop(1))
    allowed.get(key) match {
      case None =>
        Left(
          s"the parameter ${shown(text)} is not one of ${allowed.keys.toSeq.sorted.mkString(", ")}"
        )
      case Some(form) if !form.matches(value) => Left(s"the parameter $key has no such value")
      case _ => Right(key -> value)
    }
  }

  /** The parameter's name, unless it may be a part of a password that was put in the wrong place.
    */
  private def shown(parameter: String): String =
    if (parameter.matches("[A-Za-z]{1,40}=.*")) parameter.takeWhile(_ != '=') else "(unreadable)"

  private def all[A](texts: Seq[String])(part: String => Either[String, A]) =
    texts.foldRight[Either[String, Seq[A]]](Right(Nil)) { (text, rest) =>
      for { first <- part(text); others <- rest } yield first +: others
    }
}
