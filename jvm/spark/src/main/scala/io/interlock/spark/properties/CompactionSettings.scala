package io.interlock.spark.properties

import scala.util.Try

import io.interlock.spark.errors.InterlockException
import org.apache.spark.network.util.JavaUtils

/** The settings by which a compaction chooses files.
  *
  * @param smallFileSize
  *   COMPACT MINOR packs files of fewer bytes than this
  * @param minFiles
  *   the minimum number of files that COMPACT MINOR packs into one
  * @param targetFileSize
  *   bytes of input per output file; a larger file is not split
  */
final case class CompactionSettings(smallFileSize: Long, minFiles: Long, targetFileSize: Long)

/** Each setting is a table property; for tables without it, a configuration whose key ends with the
  * same word applies.
  */
object CompactionSettings {
  private val PropertyPrefix = "interlock.compaction."
  private val ConfPrefix = "spark.interlock.compaction."
  private val SmallFileSize = "smallFileSize"
  private val MinFiles = "minFiles"
  private val TargetFileSize = "targetFileSize"
  private val DefaultMinFiles = 2L

  private val Words = Seq(SmallFileSize, MinFiles, TargetFileSize)

  val propertyKeys: Seq[String] = Words.map(PropertyPrefix + _)
  val confKeys: Seq[String] = Words.map(ConfPrefix + _)

  /** @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def check(properties: Map[String, String]): Unit =
    for {
      word <- Words
      value <- properties.get(PropertyPrefix + word)
    } parse(word, PropertyPrefix + word, value)

  /** @param conf
    *   the session's configuration by key
    * @param defaults
    *   Delta's own minimum and maximum file size
    */
  def of(
      properties: Map[String, String],
      conf: String => Option[String],
      defaults: (Long, Long)
  ): CompactionSettings = {
    def setting(word: String, default: Long): Long = {
      val key = PropertyPrefix + word
      val confKey = ConfPrefix + word
      properties.get(key).map(parse(word, key, _))
        .orElse(conf(confKey).map(parse(word, confKey, _)))
        .getOrElse(default)
    }
    CompactionSettings(
      setting(SmallFileSize, defaults._1),
      setting(MinFiles, DefaultMinFiles),
      setting(TargetFileSize, defaults._2)
    )
  }

  private def parse(word: String, key: String, value: String): Long = {
    val isCount = word == MinFiles
    val number = Try(if (isCount) value.trim.toLong else JavaUtils.byteStringAsBytes(value))
    number.toOption.filter(_ > 0).getOrElse {
      val expected = if (isCount) "a positive number" else "a positive size, such as 64mb"
      throw InterlockException.invalidProperty(key, value, expected)
    }
  }
}
