package io.interlock.spark.commits

import io.interlock.coordinator.CommitLines
import io.interlock.rules.{OperationClass, WinningCommit}
import org.apache.spark.sql.delta.actions.CommitInfo

/** Keys that Interlock writes into `commitInfo.tags`. */
object CommitTags {
  private val Prefix = "interlock."
  val Class = "interlock.class"
  val Policy = "interlock.policy"
  val Replaced = "interlock.replaced"

  /** The id of the atomic block that committed. */
  val BlockId = "interlock.block"

  /** Whether a commit has no actions, and reserves the next version for an atomic block. */
  def reserves(info: Option[CommitInfo]): Boolean =
    info.flatMap(_.tags).exists(_.contains(CommitLines.PreparedTag))

  /** Whether an UPDATE or DELETE has read rows besides those that it changed. */
  val ReadsOthers = "interlock.readsOthers"

  /** The versions that the commit passed, the last hundred of them, with commas. The two tags below
    * have, in the same order, the policy's cell for each and that cell's verdict.
    */
  val Winners = "interlock.winners"
  val Rules = "interlock.rules"
  val Verdicts = "interlock.verdicts"

  val Scope = "interlock.scope"

  /** Milliseconds spent in judging and rebasing. */
  val Millis = "interlock.millis"

  /** The user who committed. */
  val User = "interlock.user"

  /** The size of the data files that were not written again. */
  val BytesSaved = "interlock.bytesSaved"

  /** The winners that a commit with these tags passed, in the order of their versions. */
  def winners(tags: Map[String, String]): Seq[WinnerRuling] = {
    def list(key: String) = tags.get(key).flatMap(Option(_)).toSeq.flatMap(_.split(','))
    val rules = list(Rules)
    val verdicts = list(Verdicts)
    for {
      (text, index) <- list(Winners).zipWithIndex
      version <- text.toLongOption
    } yield WinnerRuling(version, rules.lift(index), verdicts.lift(index))
  }

  /** A commit as its commitInfo tells it. */
  def winner(version: Long, info: Option[CommitInfo]): WinningCommit = {
    val tags = info.flatMap(_.tags).getOrElse(Map.empty)
    WinningCommit(
      version,
      info.flatMap(Operations.name),
      tags.get(Class).flatMap(OperationClass.byName),
      info.flatMap(_.txnId),
      tags.get(User)
    )
  }

  /** Whether Interlock wrote the commit with these tags: its coordinator puts a stamp on each. */
  def areOurs(tags: Map[String, String]): Boolean = tags.keys.exists(_.startsWith(Prefix))

  /** Whether Interlock wrote the commit with this commitInfo. */
  def isOurs(info: CommitInfo): Boolean = info.tags.exists(areOurs)
}

/** A winner that a commit was judged against.
  *
  * @param rule
  *   the policy's cell that decided, by its label
  */
final case class WinnerRuling(version: Long, rule: Option[String], verdict: Option[String])
