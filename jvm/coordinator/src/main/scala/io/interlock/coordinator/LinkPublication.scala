package io.interlock.coordinator

import java.io.IOException
import java.nio.file.NoSuchFileException

import scala.util.Try
import scala.util.control.NonFatal

/** Publishes one version on a local disk: a complete, synced file gets `N.json` as its second name
  * by a hard link, which the file system refuses if `N.json` exists. Then its first name is
  * deleted.
  */
final private[coordinator] class LinkPublication(
    log: TableLog,
    version: Long,
    whenSeen: () => Unit
) {
  private val folder = new LocalFolder(log)
  private val target = LogFolder.commitName(version)

  def publish(content: CommitContent): Publication = {
    LinkProbe.require(log, folder)
    content match {
      case StagedFile(name, _, _) => publish(name, content)
      case InMemory(bytes, _) => publish(bytes, content)
    }
  }

  private def publish(bytes: Array[Byte], content: CommitContent): Publication = {
    val name = Publisher.temporaryName(version)
    folder.write(name, Iterator.single(bytes))
    try {
      val publication = publish(name, content)
      Try(folder.delete(name))
      publication
    } catch {
      case unknown: PublishUnknown => throw unknown
      case e: Throwable =>
        Try(folder.delete(name))
        throw e
    }
  }

  private def publish(name: String, content: CommitContent): Publication = {
    val own = folder.status(name)
    CommitPhases.reached(CommitPhase.Publishing, log, version)
    val foreign =
      try {
        folder.link(name, target)
        None
      } catch {
        case e: IOException =>
          // On a network file system the link may have been made although the reply was lost.
          val found = lookedAt(folder.status(target).filter(_.isFile))
            .getOrElse(throw new IOException(s"${log.file(version)} cannot be made", e))
          Option.when(!lookedAt(isOwn(found, own, content)))(Foreign(found))
      }
    foreign.getOrElse(settle(name, own, content))
  }

  private def lookedAt[A](look: => A): A =
    try look
    catch { case NonFatal(e) => throw new PublishUnknown(log.file(version), e) }

  private def settle(name: String, own: Option[LocalStatus], content: CommitContent): Publication =
    lookedAt {
      Try(folder.delete(name))
      CommitPhases.reached(CommitPhase.Linked, log, version)
      if (folder.status(target).exists(isOwn(_, own, content))) whenSeen()
      folder.sync()
      val found = folder.status(target).getOrElse(throw new NoSuchFileException(target))
      if (isOwn(found, own, content)) {
        CommitPhases.reached(CommitPhase.Published, log, version)
        Published(found)
      } else Foreign(found)
    }

  private def isOwn(
      found: LocalStatus,
      own: Option[LocalStatus],
      content: CommitContent
  ): Boolean = own.exists(found.sameFile) || sameBytes(found, content)

  private def sameBytes(found: LocalStatus, content: CommitContent): Boolean =
    found.getLen == content.size && folder.sha256(found).sameElements(content.sha256)
}
