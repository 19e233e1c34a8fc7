package io.interlock.spark.claims

import io.interlock.rules.{ClaimScope, OperationClass, Policy, Winner}
import io.interlock.spark.text.Json

/** A claim on a table: commits of others wait for it until it ends.
  *
  * @param tableId
  *   Delta's id of the table
  * @param since
  *   when it was asked for, in milliseconds of the owner's clock
  * @param owner
  *   user and application
  * @param session
  *   whose commits it does not hold: a session, or a process if it is for one commit; none for a
  *   single statement
  * @param scope
  *   the job that it protects; none if it is for one commit, which others have overtaken many times
  * @param until
  *   when it ends at the latest, by the owner's clock; none while it waits for an earlier claim
  */
final case class Claim(
    id: String,
    tableId: String,
    since: Long,
    owner: String,
    session: Option[String],
    scope: Option[ClaimScope],
    until: Option[Long]
) {

  def isGranted: Boolean = until.nonEmpty

  /** Whether it is for one commit. */
  def isTurn: Boolean = scope.isEmpty

  /** Whether it goes first: of turns, and of the claims of jobs, the earliest does. */
  def precedes(other: Claim): Boolean = isTurn == other.isTurn &&
    (since < other.since || since == other.since && id < other.id)

  /** Whether a commit of others waits for it. See [[ClaimScope.holds]]. */
  def holds(policy: Policy, commit: Winner, isBlindAppend: Boolean): Boolean =
    scope.forall(_.holds(policy, commit, isBlindAppend))

  def toJson: String = Json.write(Map[String, Any](
    "table" -> tableId,
    "since" -> since.toString,
    "owner" -> owner,
    "session" -> session,
    "class" -> scope.flatMap(_.operationClass).map(_.name),
    "partitions" -> scope.map(_.partitions),
    "holdsAll" -> scope.filter(_.holdsAll).map(_.holdsAll.toString),
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
    } yield Claim(
      id,
      tableId,
      since,
      owner,
      given.get("session"),
      fields.get("partitions").collect { case several: Seq[_] =>
        ClaimScope(
          given.get("class").flatMap(OperationClass.byName),
          several.collect { case values: Map[_, _] => partition(values) },
          holdsAll = given.contains("holdsAll")
        )
      },
      given.get("until").flatMap(_.toLongOption)
    )

  private def partition(values: Map[_, _]): Map[String, String] =
    values.map { case (column, value) => column.toString -> Option(value).map(_.toString).orNull }
}
