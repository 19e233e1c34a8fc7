package io.interlock.coordinator

import java.io.IOException
import java.nio.file.NoSuchFileException

import scala.util.control.NonFatal
import scala.util.{Try, Using}

/** Publishes one version on a local disk: a complete, synced file gets `N.json` as its second name
  * by a hard link, which the file system refuses if `N.json` exists. Then its first name is
  * deleted. The version is durable once the folder is synced.
  */
final private[coordinator] class LocalPublisher(
    log: TableLog,
    version: Long,
    content: CommitContent,
    whenSeen: () => Unit
) {
  private val folder = new LocalFolder(log)
  private val target = LogFolder.commitName(version)

  /** The file that was linked. */
  private var own: Option[LocalStatus] = None

  /** Makes the version visible. */
  def link(): Publication = {
    LinkProbe.require(log, folder)
    content match {
      case StagedFile(name, _, _) =>
        try link(name)
        catch {
          case unknown: PublishUnknown => throw unknown
          case _: IOException => linkCopy(name)
        }
      case InMemory(bytes, _) => linkNew(Iterator.single(bytes))
    }
  }

  /** Linux by default refuses a link to the file of another user, who may be gone. */
  private def linkCopy(name: String): Publication = Using.resource(folder.open(name)) { in =>
    val publication = linkNew(Iterator.continually(in.readNBytes(1 << 20)).takeWhile(_.nonEmpty))
    if (publication.isInstanceOf[Published]) Try(folder.delete(name)): Unit
    publication
  }

  private def linkNew(parts: Iterator[Array[Byte]]): Publication = {
    val name = Publisher.temporaryName(version)
    folder.write(name, parts)
    try link(name)
    finally Try(folder.delete(name)): Unit
  }

  /** What has the version after the folder was synced. */
  def settle(): Publication = lookedAt {
    val publication = found()
    if (publication.isInstanceOf[Published])
      CommitPhases.reached(CommitPhase.Published, log, version)
    publication
  }

  private def link(name: String): Publication = {
    own = folder.status(name)
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
          Option.when(!lookedAt(isOwn(found)))(Foreign(found))
      }
    foreign.getOrElse(seen(name))
  }

  private def seen(name: String): Publication = lookedAt {
    Try(folder.delete(name))
    CommitPhases.reached(CommitPhase.Linked, log, version)
    val publication = found()
    if (publication.isInstanceOf[Published]) whenSeen()
    publication
  }

  private def found(): Publication = {
    val found = folder.status(target).getOrElse(throw new NoSuchFileException(target))
    if (isOwn(found)) Published(found) else Foreign(found)
  }

  private def lookedAt[A](look: => A): A =
    try look
    catch { case NonFatal(e) => throw new PublishUnknown(log.file(version), e) }

  private def isOwn(found: LocalStatus): Boolean = own.exists(found.sameFile) || sameBytes(found)

  private def sameBytes(found: LocalStatus): Boolean =
    found.getLen == content.size && folder.sha256(found).sameElements(content.sha256)
}
