package io.interlock.spark.compaction

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode
import io.interlock.rules.rebase.Segment
import org.apache.spark.sql.delta.actions.{Action, AddFile, FileAction, RemoveFile}
import org.apache.spark.sql.delta.util.JsonUtils

/** The tags by which a compaction's actions say where the rows of its inputs went.
  *
  * A rewrite tags its output with all segments. The commit moves each segment into the RemoveFile
  * of its input, so that no tag grows with the number of inputs, and neither later versions nor
  * checkpoints repeat the tags. An output keeps only the number of its inputs.
  */
object Lineage {

  /** A tag of an output before the commit: `[[source, vector, start, rows, target], ...]`. */
  private val Inputs = "interlock.inputs"

  /** A tag of an input's RemoveFile: `[vector, [output, start, rows, target, start, ...], ...]`. */
  private val Moved = "interlock.moved"

  /** A tag of an output: the number of its inputs. */
  private val Compacted = "interlock.compacted"

  /** The maximum length of a tag in characters, since JSON readers limit the length of a text. A
    * longer tag is left out, and the rows cannot be followed.
    */
  private val Most = 1 << 20

  /** An output of a rewrite, to be committed. */
  def written(output: AddFile, segments: Seq[Segment]): AddFile = {
    val fields = segments.map(s => Seq[Any](s.source, s.vector, s.start, s.rows, s.target))
    output.copyWithTags(Map(Inputs -> JsonUtils.toJson(fields)))
  }

  /** The actions as they are written to the log. */
  def committed(actions: Seq[Action]): Seq[Action] = {
    val lineages = actions.collect {
      case add: AddFile if add.getTag(Inputs).nonEmpty => add.path -> ofOutput(add)
    }
    if (lineages.isEmpty) actions
    else {
      val counts = lineages.map { case (path, segments) =>
        path -> segments.map(_.source).distinct.size
      }.toMap
      val removed = moving(lineages)
      actions.map {
        case add: AddFile if counts.contains(add.path) =>
          add.copy(tags = add.tags - Inputs + (Compacted -> counts(add.path).toString))
        case remove: RemoveFile => removed(remove)
        case other => other
      }
    }
  }

  /** Tags the RemoveFile of an input with the new places of its rows. */
  def moving(outputs: Seq[(String, Seq[Segment])]): RemoveFile => RemoveFile = {
    val pieces = outputs
      .flatMap { case (output, segments) => segments.map(output -> _) }
      .groupBy { case (_, segment) => segment.source }
    remove => {
      val text = pieces.get(remove.path).map(encode).filter(_.length <= Most)
      val tags = remove.tagsOrEmpty ++ text.map(Moved -> _)
      remove.copy(tags = Option(tags).filter(_.nonEmpty).orNull)
    }
  }

  /** The segments of each output of a compaction, if what it removed has the tags. */
  def of(removes: Seq[RemoveFile]): Map[String, Seq[Segment]] = removes
    .flatMap(remove => tagged(remove, Moved)(decode(remove.path, _))).groupMap(_._1)(_._2)

  def isCompacted(file: AddFile): Boolean = file.getTag(Compacted).nonEmpty

  private def ofOutput(add: AddFile): Seq[Segment] =
    tagged(add, Inputs)(_.map(elements).map { segment =>
      val numbers = segment.drop(2).map(number)
      Segment(text(segment(0)), text(segment(1)), numbers(0), numbers(1), numbers(2))
    })

  private def encode(pieces: Seq[(String, Segment)]): String = {
    val placed = pieces.groupMap(_._1)(_._2).map { case (output, segments) =>
      output +: segments.flatMap(s => Seq[Any](s.start, s.rows, s.target))
    }
    JsonUtils.toJson(Seq[Any](pieces.head._2.vector) ++ placed)
  }

  private def decode(source: String, tag: Seq[JsonNode]): Seq[(String, Segment)] =
    for {
      output <- tag.tail.map(elements)
      numbers <- output.tail.map(number).grouped(3)
    } yield text(output.head) ->
      Segment(source, text(tag.head), numbers(0), numbers(1), numbers(2))

  /** Also none if the tag has not the form that Interlock writes. */
  private def tagged[A](file: FileAction, tag: String)(read: Seq[JsonNode] => Seq[A]): Seq[A] =
    file.getTag(tag).flatMap(json => Try(read(elements(JsonUtils.mapper.readTree(json)))).toOption)
      .getOrElse(Nil)

  private def elements(node: JsonNode): Seq[JsonNode] = {
    require(node.isArray)
    node.elements.asScala.toVector
  }

  private def text(node: JsonNode): String = {
    require(node.isTextual)
    node.asText
  }

  private def number(node: JsonNode): Long = {
    require(node.isIntegralNumber)
    node.asLong
  }
}
