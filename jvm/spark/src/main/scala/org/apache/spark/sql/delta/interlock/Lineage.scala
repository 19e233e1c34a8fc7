package org.apache.spark.sql.delta.interlock

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import io.interlock.rules.rebase.Segment
import org.apache.spark.sql.delta.util.JsonUtils

/** Where the rows of a compacted file come from, as its AddFile's tag says it: a JSON array of
  * `[source, vector, start, rows, target]`, in the order of the file's rows.
  */
private[interlock] object Lineage {
  val Tag = "interlock.inputs"

  def encode(segments: Seq[Segment]): String =
    JsonUtils.toJson(segments.map(s => Seq[Any](s.source, s.vector, s.start, s.rows, s.target)))

  /** @throws IllegalArgumentException
    *   where the text is not what `encode` writes
    */
  def decode(json: String): Seq[Segment] = JsonUtils.mapper.readTree(json) match {
    case segments if segments.isArray => segments.elements.asScala.map(segment).toSeq
    case _ => throw notLineage(json)
  }

  private def segment(node: JsonNode): Segment = node.elements.asScala.toSeq match {
    case Seq(source, vector, rest @ _*)
        if source.isTextual && vector.isTextual && rest.size == 3 &&
          rest.forall(_.isIntegralNumber) =>
      Segment(source.asText, vector.asText, rest(0).asLong, rest(1).asLong, rest(2).asLong)
    case _ => throw notLineage(node.toString)
  }

  private def notLineage(json: String) =
    new IllegalArgumentException(s"'${json.take(100)}' does not say where rows come from.")
}
