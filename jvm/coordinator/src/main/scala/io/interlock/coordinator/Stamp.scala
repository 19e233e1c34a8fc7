package io.interlock.coordinator

import scala.util.matching.Regex

/** The coordinator that ordered a commit, and the commit's place in that order; a part of the
  * commit itself.
  *
  * @param coordinator
  *   the coordinator's name or, of a database, the id of the table's row there; without a slash
  * @param epoch
  *   grows with each repair of the coordinator
  * @param sequence
  *   grows with each commit of the table in an epoch
  */
final case class Stamp(coordinator: String, epoch: Long, sequence: Long) {

  /** The stamp's text in commitInfo. */
  def text: String = s"$coordinator/$epoch/$sequence"
}

object Stamp {
  private val Text: Regex = """([^/]+)/(\d{1,18})/(\d{1,18})""".r

  /** The stamp that the filesystem store gives. */
  def filesystem(version: Long): Stamp = Stamp("filesystem", 0, version)

  /** The stamp; none if the text is not one. */
  def parse(text: String): Option[Stamp] = text match {
    case Text(coordinator, epoch, sequence) =>
      Some(Stamp(coordinator, epoch.toLong, sequence.toLong))
    case _ => None
  }
}
