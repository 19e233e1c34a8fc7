package io.interlock.coordinator

import java.io.IOException
import java.nio.file.attribute.BasicFileAttributes

import scala.util.Try
import scala.util.control.NonFatal

/** Publishes one version on a local disk: a complete, synced file gets `N.json` as its second name,
  * which the file system refuses where there is one, and then loses its first.
  */
final private[coordinator] class LinkPublication(log: TableLog, version: Long) {
  private val folder = new LocalFolder(log)
  private val target = LogFolder.commitName(version)

  def publish(content: CommitContent): Publication = {
    LinkProbe.require(log, folder)
    content match {
      case StagedFile(name, _, _) => publish(name, content)
      case InMemory(bytes, _) =>
        val name = Publisher.temporaryName(version)
        folder.write(name, Iterator.single(bytes))
        try publish(name, content)
        catch {
          case unknown: PublishUnknown => throw unknown
          case e: Throwable =>
            Try(folder.delete(name))
            throw e
        }
    }
  }

  private def publish(name: String, content: CommitContent): Publication = {
    CommitPhases.reached(CommitPhase.Publishing, log, version)
    val linked =
      try {
        folder.link(name, target)
        None
      } catch { case e: IOException => foreign(name, content, e) }
    linked.getOrElse(settle(name))
  }

  /** What the failed link means: none if the file in the way is the one to publish, as after a lost
    * reply of a network file system.
    */
  private def foreign(name: String, content: CommitContent, e: IOException): Option[Publication] = {
    val found = folder.attributes(target).filter(_.isRegularFile).getOrElse(throw e)
    if (sameFile(name, found) || sameBytes(content, found)) None
    else folder.status(target).map(Foreign)
  }

  private def sameFile(name: String, found: BasicFileAttributes): Boolean =
    folder.attributes(name).exists(_.fileKey == found.fileKey)

  private def sameBytes(content: CommitContent, found: BasicFileAttributes): Boolean =
    content.size == found.size && folder.sha256(target).sameElements(content.sha256)

  private def settle(name: String): Publication =
    try {
      CommitPhases.reached(CommitPhase.Linked, log, version)
      Try(folder.delete(name))
      folder.sync()
      CommitPhases.reached(CommitPhase.Published, log, version)
      Published(folder.status(target).get)
    } catch { case NonFatal(e) => throw new PublishUnknown(log.file(version), e) }
}
