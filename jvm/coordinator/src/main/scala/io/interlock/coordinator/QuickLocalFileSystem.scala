package io.interlock.coordinator

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{FileAlreadyExistsException, Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/** Hadoop's local file system, without the process that it starts for each file it creates: that
  * one only sets the file's permissions. It makes no folders, so that a file of a log whose table is
  * dropped meanwhile does not bring back its folder.
  */
final class QuickLocalFileSystem
    extends LocalFileSystem(new RawLocalFileSystem {
      override def mkdirs(folder: Path): Boolean = pathToFile(folder).isDirectory

      override def mkdirs(folder: Path, permission: FsPermission): Boolean = mkdirs(folder)

      override def setPermission(file: Path, permission: FsPermission): Unit = {
        // Without the type and the sticky bit, which symbols of a file do not have.
        val symbols = new FsPermission(permission.toShort).toString.take(9)
        val _ =
          Files.setPosixFilePermissions(
            pathToFile(file).toPath,
            PosixFilePermissions.fromString(symbols)
          )
      }
    })

object QuickLocalFileSystem {
  private val Key = "fs.file.impl"
  private val AllPermissions = 0x1ff

  /** Whether a path is on a local disk or a mounted network disk. */
  def isLocal(path: Path): Boolean = Option(path.toUri.getScheme).forall(_ == "file")

  /** Gives a new file or folder on a local disk the permissions that Hadoop gives: they follow
    * `fs.permissions.umask-mode` and not the umask of the process. What else a folder has from the
    * one above, such as its group for new files, stays.
    */
  def permit(made: LocalPath, conf: Configuration): Unit = {
    val mode = Files.getAttribute(made, "unix:mode").asInstanceOf[Int]
    val most =
      if (Files.isDirectory(made)) FsPermission.getDirDefault else FsPermission.getFileDefault
    val wanted = most.applyUMask(FsPermission.getUMask(conf)).toShort
    Files.setAttribute(made, "unix:mode", mode & ~AllPermissions | wanted): Unit
  }

  /** Makes a folder in a folder that is there, unless it is there already. */
  def makeFolder(folder: LocalPath, conf: Configuration): Unit =
    try permit(Files.createDirectory(folder), conf)
    catch { case _: FileAlreadyExistsException => }

  /** Lets a configuration use it for local files, unless it names another file system for them. */
  def use(conf: Configuration): Unit =
    if (conf.get(Key, classOf[LocalFileSystem].getName) == classOf[LocalFileSystem].getName) {
      conf.setClassLoader(getClass.getClassLoader)
      conf.setClass(Key, classOf[QuickLocalFileSystem], classOf[FileSystem])
      conf.setBoolean(s"$Key.disable.cache", true)
    }
}
