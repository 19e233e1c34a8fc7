package io.interlock.spark.claims

import io.interlock.rules.{ClaimScope, OperationClass}
import io.interlock.spark.text.Json

/** What several processes ask for; the earliest goes first. */
sealed trait InLine {
  def id: String
  def since: Long

  def precedes(other: InLine): Boolean =
    since < other.since || since == other.since && id < other.id
}

/** A claim on a table: commits that would make its owner's job lose wait until it ends.
  *
  * @param tableId
  *   Delta's id of the table
  * @param since
  *   when it was asked for, in milliseconds of the owner's clock; claims that conflict are granted in
  *   this order
  * @param owner
  *   user and application
  * @param session
  *   the session whose jobs it protects; none for a single statement
  * @param until
  *   when it ends at the latest, by the owner's clock; none while it waits for an earlier claim
  */
final case class Claim(
    id: String,
    tableId: String,
    since: Long,
    owner: String,
    session: Option[String],
    scope: ClaimScope,
    until: Option[Long]
) extends InLine {

  def isGranted: Boolean = until.nonEmpty

  def toJson: String = Json.write(Map[String, Any](
    "table" -> tableId,
    "since" -> since.toString,
    "owner" -> owner,
    "session" -> session,
    "class" -> scope.operationClass.map(_.name),
    "partitions" -> scope.partitions,
    "until" -> until.map(_.toString)
  ))
}

private[claims] object Claim {

  /** None for a text that is not a claim's, such as one that is just being written. */
  def of(id: String, text: String): Option[Claim] =
    for {
      fields <- Json.readObject(text)
      given = fields.collect { case (name, value: String) => name -> value }
      since <- given.get("since").flatMap(_.toLongOption)
      owner <- given.get("owner")
      tableId <- given.get("table")
      partitions <- fields.get("partitions").collect { case several: Seq[_] =>
        several.collect { case values: Map[_, _] => partition(values) }
      }
    } yield Claim(
      id,
      tableId,
      since,
      owner,
      given.get("session"),
      ClaimScope(given.get("class").flatMap(OperationClass.byName), partitions),
      given.get("until").flatMap(_.toLongOption)
    )

  private def partition(values: Map[_, _]): Map[String, String] =
    values.map { case (column, value) => column.toString -> Option(value).map(_.toString).orNull }
}

/** Holds every commit of other processes, for one that they have overtaken many times.
  *
  * @param since
  *   when the commit began its first try, in milliseconds of its process's clock; of several turns the
  *   earliest goes first
  * @param owner
  *   user and application
  */
final case class Turn(id: String, tableId: String, since: Long, owner: String) extends InLine {

  def toJson: String =
    Json.write(Map("table" -> tableId, "turn" -> since.toString, "owner" -> owner))
}

object Turn {

  /** None for a text that is not a turn's, such as a claim's. */
  private[claims] def of(id: String, text: String): Option[Turn] =
    for {
      fields <- Json.readObject(text)
      given = fields.collect { case (name, value: String) => name -> value }
      since <- given.get("turn").flatMap(_.toLongOption)
      tableId <- given.get("table")
      owner <- given.get("owner")
    } yield Turn(id, tableId, since, owner)
}
