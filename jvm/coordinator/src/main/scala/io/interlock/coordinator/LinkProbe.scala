package io.interlock.coordinator

import java.io.IOException
import java.nio.file.{FileAlreadyExistsException, Files, Path => LocalPath}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

/** Tests whether a file system really refuses to create a file whose name is taken. Each file
  * system is tested once per process.
  */
private[interlock] object LinkProbe {
  private val passed = ConcurrentHashMap.newKeySet[AnyRef]()

  /** @throws CoordinatorException
    *   if two writers could both be told that they have made a version
    */
  private[coordinator] def require(log: TableLog, folder: LocalFolder): Unit = {
    val device = Files.getAttribute(folder.path, "unix:dev")
    if (!passed.contains(device)) {
      fault(folder.path).foreach { found =>
        val parameters = Map("path" -> log.path.toString, "found" -> found)
        throw new CoordinatorException("INTERLOCK_NO_HARD_LINKS", parameters)
      }
      folder.sync()
      passed.add(device): Unit
    }
  }

  /** What is wrong with hard links in `folder`; none if they work. */
  def fault(folder: LocalPath): Option[String] = fault(folder, Files.createLink(_, _))

  /** What is wrong with `link` in `folder`; none if it works.
    *
    * @param link
    *   makes its first argument a name of its second
    */
  def fault(folder: LocalPath, link: (LocalPath, LocalPath) => Any): Option[String] = {
    val probe = s".probe.${UUID.randomUUID()}"
    val first = folder.resolve(s"$probe.first.tmp")
    val second = folder.resolve(s"$probe.second.tmp")
    val name = folder.resolve(s"$probe.name.tmp")
    try {
      Files.writeString(first, "first")
      Files.writeString(second, "second")
      linkFault(link, first, name).orElse(secondLinkFault(link, second, name))
    } finally Seq(first, second, name).foreach(file => Try(Files.deleteIfExists(file)))
  }

  private def linkFault(
      link: (LocalPath, LocalPath) => Any,
      file: LocalPath,
      name: LocalPath
  ): Option[String] =
    try {
      link(name, file)
      Option.when(Files.readString(name) != "first")("a hard link that shows another file")
    } catch {
      case e @ (_: IOException | _: UnsupportedOperationException) =>
        Some(s"no hard link can be made ($e)")
    }

  private def secondLinkFault(
      link: (LocalPath, LocalPath) => Any,
      file: LocalPath,
      name: LocalPath
  ): Option[String] =
    try {
      link(name, file)
      Some("a hard link was made in the place of an existing file")
    } catch {
      case _: FileAlreadyExistsException =>
        Option.when(Files.readString(name) != "first")("an existing file was replaced")
    }
}
