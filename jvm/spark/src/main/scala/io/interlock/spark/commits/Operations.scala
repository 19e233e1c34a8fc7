package io.interlock.spark.commits

import scala.util.Try

import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.util.JsonUtils

/** What commits say of their operation. */
object Operations {

  /** The operation by the statement's name: Delta calls every INSERT a WRITE. */
  def name(operation: DeltaOperations.Operation): String =
    name(operation.name, operation.jsonEncodedValues)

  /** None where the commit does not say. */
  def name(info: CommitInfo): Option[String] = Option(info.operation)
    .map(name(_, Option(info.operationParameters).getOrElse(Map.empty)))

  private def name(inLog: String, parameters: Map[String, String]): String =
    (inLog, unquoted(parameters).get("mode")) match {
      case ("WRITE", Some("Append")) => "INSERT INTO"
      case ("WRITE", Some("Overwrite")) => "INSERT OVERWRITE"
      case _ => inLog
    }

  /** Parameters that are as the commit's file has them: strings are JSON, quoted and escaped. Empty
    * for null.
    */
  def unquoted(parameters: Map[String, String]): Map[String, String] =
    parameters.map { case (key, value) =>
      val text = Try(JsonUtils.fromJson[String](value)).getOrElse(value)
      key -> Option(text).getOrElse("")
    }
}
