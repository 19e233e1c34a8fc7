package io.interlock.coordinator.postgres

import java.io.{BufferedReader, ByteArrayInputStream, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.interlock.coordinator._

/** The contents of a batch's commits: in memory, or in staged files if they are large. For use by
  * one thread.
  */
final private[postgres] class Drafts(
    publisher: Publisher,
    log: TableLog,
    asked: Seq[CommitRequest]
) {
  private var stamp: Option[Stamp] = None
  private var contents = Vector.empty[CommitContent]
  private var failed: Option[Throwable] = None
  private var ready = asked

  /** The requests before the first one whose content could not be read or staged. */
  def requests: Seq[CommitRequest] = ready

  /** Why the request after them has no content. */
  def failure: Option[Throwable] = failed

  /** The contents of [[requests]], stamped with `wanted`. The lines are read once.
    *
    * @throws java.lang.Exception
    *   the [[failure]], if no request is left
    */
  def stamped(wanted: Stamp): Seq[CommitContent] = {
    if (!stamp.contains(wanted)) {
      val before = contents
      contents = stage(wanted, before)
      stamp = Some(wanted)
      before.foreach(publisher.discard(log, _))
      ready = asked.take(contents.size)
    }
    if (ready.isEmpty) failed.foreach(throw _)
    contents
  }

  /** Deletes the staged files of the requests for which `wanted` is true. */
  def discard(wanted: CommitRequest => Boolean): Unit = requests.zip(contents).foreach {
    case (request, content) => if (wanted(request)) publisher.discard(log, content)
  }

  private def stage(wanted: Stamp, before: Seq[CommitContent]): Vector[CommitContent] = {
    def content(request: CommitRequest, i: Int): CommitContent = {
      def staged(lines: Iterator[String]) = publisher
        .stage(log, request.version, request.txnId, CommitLines.stamped(lines, wanted))
      before.lift(i).fold(staged(request.lines))(Drafts.reading(log, _)(staged))
    }
    ready.iterator.zipWithIndex.map { case (request, i) => Try(content(request, i)) }
      .takeWhile { staged =>
        staged.failed.foreach(e => failed = Some(e))
        staged.isSuccess
      }.map(_.get).toVector
  }
}

private[postgres] object Drafts {

  /** Reads the lines of a commit's content. */
  def reading[A](log: TableLog, content: CommitContent)(read: Iterator[String] => A): A = {
    val bytes = content match {
      case InMemory(bytes, _) => new ByteArrayInputStream(bytes)
      case StagedFile(name, _, _) => LogFolder.of(log).open(name)
    }
    Using.resource(new BufferedReader(new InputStreamReader(bytes, UTF_8)))(reader =>
      read(reader.lines().iterator.asScala)
    )
  }
}
