package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.Verdict
import io.interlock.spark.commits.CommitTags
import org.apache.spark.sql.delta.CurrentTransactionInfo

/** A winner that changed something in an attempt's scope and that the attempt passed.
  *
  * @param rule
  *   the policy's cell, by its label
  * @param scope
  *   the partitions in which they overlap, as text
  */
final private[interlock] case class PassedWinner(
    version: Long,
    rule: String,
    verdict: Verdict,
    scope: String
)

private[interlock] object PassedWinner {
  private val MostScopes = 3

  /** The tags name at most so many of the winners, the newest ones. */
  val MostNamed = 100
  private val BetweenScopes = "; "

  /** The verdicts by which a commit has passed others so far. */
  def verdicts(info: CurrentTransactionInfo): Seq[String] =
    info.commitInfo.flatMap(_.tags).toSeq.flatMap(CommitTags.winners).flatMap(_.verdict)

  /** Adds the winners to the tags of the commit, after those of earlier rounds.
    *
    * @param millis
    *   time spent in this round
    * @param bytesSaved
    *   the size of the data files that the attempt has written and need not write again
    */
  def tag(
      info: CurrentTransactionInfo,
      passed: Seq[PassedWinner],
      millis: Long,
      bytesSaved: Long
  ): CurrentTransactionInfo =
    info.copy(commitInfo = info.commitInfo.map { commit =>
      val tags = commit.tags.getOrElse(Map.empty)
      def before(key: String, separator: String = ",") =
        tags.get(key).toSeq.flatMap(_.split(separator))
      def withBefore(key: String, of: PassedWinner => String) =
        key -> (before(key) ++ passed.map(of)).takeRight(MostNamed).mkString(",")
      val scopes = (before(CommitTags.Scope, BetweenScopes) ++ passed.map(_.scope)).distinct
      commit.copy(tags =
        Some(tags ++ Map(
          withBefore(CommitTags.Winners, _.version.toString),
          withBefore(CommitTags.Rules, _.rule),
          withBefore(CommitTags.Verdicts, _.verdict.name),
          CommitTags.Scope -> scopes.take(MostScopes).mkString(BetweenScopes),
          CommitTags.Millis -> (before(CommitTags.Millis).map(_.toLong).sum + millis).toString,
          CommitTags.BytesSaved -> bytesSaved.toString
        ))
      )
    })
}
