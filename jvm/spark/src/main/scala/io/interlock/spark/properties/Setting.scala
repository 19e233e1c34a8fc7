package io.interlock.spark.properties

import scala.util.Try

import io.interlock.spark.errors.InterlockException
import org.apache.spark.network.util.JavaUtils

/** A setting of the session or the process; some are table properties as well, which come first.
  *
  * @param word
  *   the key without its beginning
  * @param expected
  *   what the error says that a value must be
  */
final class Setting[A] private (word: String, expected: String)(parse: String => Option[A]) {
  val conf: String = s"spark.interlock.$word"
  val property: String = s"interlock.$word"

  /** The value in a configuration, which is asked by key.
    *
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def in(configuration: String => Option[String]): Option[A] =
    configuration(conf).map(parsed(conf, _))

  /** The value of a table with these properties, or else in the configuration. */
  def in(properties: Map[String, String], configuration: String => Option[String]): Option[A] =
    properties.get(property).map(parsed(property, _)).orElse(in(configuration))

  /** @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def check(properties: Map[String, String]): Unit = {
    val _ = in(properties, _ => None)
  }

  private def parsed(key: String, text: String): A = Try(parse(text)).toOption.flatten
    .getOrElse(throw InterlockException.invalidProperty(key, text, expected))
}

object Setting {
  private val LeastMemory = 64L << 10

  /** How often a commit is tried when other processes commit first. */
  val MaxAttempts: Setting[Int] = positive("commit.maxAttempts")

  /** How much of the commits of all tables a driver keeps in memory, to judge others by. */
  val CommitMemory: Setting[Long] =
    new Setting("commit.memory", "a size of 64k or more, such as 128m")(text =>
      Some(JavaUtils.byteStringAsBytes(text)).filter(_ >= LeastMemory)
    )

  /** Whether each commit logs where its time went. Read after the commit, which must not fail by it.
    */
  val Trace: Setting[Boolean] =
    new Setting("trace", "true or false")(text => Some(text.trim.equalsIgnoreCase("true")))

  /** A source of no more rows is compared with a winner's rows in the committing thread, a larger one
    * by a Spark job for each winner.
    */
  val MaxSourceRows: Setting[Int] =
    new Setting("judging.maxSourceRows", "a number of rows")(_.trim.toIntOption.filter(_ >= 0))

  /** A comparison of rows is cancelled after this time, and the commit fails. */
  val JudgingSeconds: Setting[Long] =
    new Setting("judging.timeout", "a time of a second or more, such as 60s")(text =>
      Some(JavaUtils.timeStringAsSec(text)).filter(_ > 0)
    )

  /** How often a statement that loses a conflict is run, the first run included. */
  val MaxRuns: Setting[Int] = positive("rerun.maxRuns")

  /** COMPACT MINOR packs files of fewer bytes than this. */
  val SmallFileSize: Setting[Long] = size("compaction.smallFileSize")

  /** The minimum number of files that COMPACT MINOR packs into one. */
  val MinFiles: Setting[Int] = positive("compaction.minFiles")

  /** Bytes of input per output file of a compaction; a larger file is not split. */
  val TargetFileSize: Setting[Long] = size("compaction.targetFileSize")

  /** Those that are table properties as well. */
  val ofTables: Seq[Setting[_]] = Seq(MaxRuns, SmallFileSize, MinFiles, TargetFileSize)

  val all: Seq[Setting[_]] =
    Seq(MaxAttempts, CommitMemory, Trace, MaxSourceRows, JudgingSeconds) ++ ofTables

  private def positive(word: String) =
    new Setting(word, "a positive number")(_.trim.toIntOption.filter(_ > 0))

  private def size(word: String) =
    new Setting(word, "a positive size, such as 64mb")(text =>
      Some(JavaUtils.byteStringAsBytes(text)).filter(_ > 0)
    )
}
