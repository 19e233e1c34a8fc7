package io.interlock.spark.commits

import org.apache.spark.sql.delta.actions.CommitInfo

/** Keys that Interlock writes into `commitInfo.tags`. */
object CommitTags {
  private val Prefix = "interlock."
  val Class = "interlock.class"
  val Policy = "interlock.policy"
  val Replaced = "interlock.replaced"

  /** Whether an UPDATE or DELETE has read rows besides those that it changed. */
  val ReadsOthers = "interlock.readsOthers"

  /** The versions that the commit passed, the last hundred of them, and the rules that let it. */
  val RebasedOver = "interlock.rebasedOver"
  val Rule = "interlock.rule"

  /** The verdicts, one for each of these versions. */
  val Verdicts = "interlock.verdicts"
  val Scope = "interlock.scope"

  /** Spent in judging and rebasing. */
  val Millis = "interlock.millis"

  /** Who committed. */
  val User = "interlock.user"

  /** The size of the data files that were not written again. */
  val BytesSaved = "interlock.bytesSaved"

  /** Whether Interlock wrote the commit that has these tags: its coordinator marks every one. */
  def areOurs(tags: Map[String, String]): Boolean = tags.keys.exists(_.startsWith(Prefix))

  /** Whether Interlock wrote the commit of which this tells. */
  def isOurs(info: CommitInfo): Boolean = info.tags.exists(areOurs)
}
