package io.interlock.coordinator

import scala.util.Try

import com.fasterxml.jackson.core.{JsonFactoryBuilder, StreamReadConstraints}
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode}

/** Reads and stamps the first line of a commit, `{"commitInfo":{...}}`. */
object CommitLines {

  /** The key of the stamp in commitInfo.tags. */
  val StampTag = "interlock.coordinator"

  /** Keeps all digits of numbers, and has no limit on length or depth that a commit of Delta could
    * exceed.
    */
  private val mapper = JsonMapper
    .builder(
      new JsonFactoryBuilder().streamReadConstraints(
        StreamReadConstraints.builder().maxStringLength(Int.MaxValue).maxNameLength(Int.MaxValue)
          .maxNumberLength(Int.MaxValue).maxNestingDepth(Int.MaxValue).build()
      ).build()
    )
    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
    .build()

  /** The same lines, with the stamp added to the tags of the commitInfo; everything else and its
    * order stays.
    *
    * @throws IllegalArgumentException
    *   if the first line is not a commitInfo
    */
  def stamped(lines: Iterator[String], stamp: Stamp): Iterator[String] = {
    val first = if (lines.hasNext) lines.next() else ""
    val line = parse(first).getOrElse(noCommitInfo)
    val info = commitInfo(line).getOrElse(noCommitInfo)
    tagsFor(info).put(StampTag, stamp.text)
    Iterator.single(mapper.writeValueAsString(line)) ++ lines
  }

  /** The key of what [[Prepared]] says in commitInfo.tags. */
  val PreparedTag = "interlock.prepared"

  /** Of the block's id. */
  private val BlockTag = "interlock.block"

  /** The commitInfo of a version that is committed just before the one with this first line.
    *
    * @param text
    *   of its tag
    */
  private[coordinator] def preparing(firstLine: String, txnId: String, text: String): String = {
    val line = parse(firstLine).getOrElse(noCommitInfo)
    val info = commitInfo(line).getOrElse(noCommitInfo)
    val block = obj(info, "tags").flatMap(this.text(_, BlockTag))
    info.put("operation", "PREPARE ATOMIC BLOCK")
    info.putObject("operationParameters")
    info.remove("operationMetrics")
    info.remove("userMetadata")
    info.put("isBlindAppend", true)
    info.put("txnId", txnId)
    if (info.hasNonNull(Time)) info.put(Time, info.get(Time).longValue - 1)
    val tags = info.putObject("tags")
    block.foreach(tags.put(BlockTag, _))
    tags.put(PreparedTag, text)
    mapper.writeValueAsString(line)
  }

  private val Time = "inCommitTimestamp"

  /** What the commit with this first line has prepared. */
  private[coordinator] def preparedOf(line: String): Option[String] =
    if (!line.contains(PreparedTag)) None
    else parse(line).flatMap(commitInfo).flatMap(obj(_, "tags")).flatMap(text(_, PreparedTag))

  /** Delta's id of the transaction, from the first line of its commit. */
  def txnIdOf(line: String): Option[String] =
    parse(line).flatMap(commitInfo).flatMap(text(_, "txnId"))

  /** The stamp, from the first line of a commit; none if no coordinator of Interlock ordered it. */
  def stampOf(line: String): Option[Stamp] =
    parse(line).flatMap(commitInfo).flatMap(obj(_, "tags")).flatMap(text(_, StampTag))
      .flatMap(Stamp.parse)

  private def noCommitInfo: Nothing =
    throw new IllegalArgumentException("The first line of a commit must be its commitInfo.")

  private def tagsFor(info: ObjectNode): ObjectNode =
    obj(info, "tags").getOrElse(info.putObject("tags"))

  private def commitInfo(line: ObjectNode): Option[ObjectNode] = obj(line, "commitInfo")

  private def parse(line: String): Option[ObjectNode] =
    Try(mapper.readTree(line)).toOption.flatMap(asObject)

  private def obj(node: ObjectNode, key: String): Option[ObjectNode] = asObject(node.get(key))

  private def asObject(node: JsonNode): Option[ObjectNode] = node match {
    case found: ObjectNode => Some(found)
    case _ => None
  }

  private def text(node: ObjectNode, key: String): Option[String] =
    Option(node.get(key)).filter(_.isTextual).map(_.textValue)
}
