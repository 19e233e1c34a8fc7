package io.interlock.coordinator.postgres

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.PosixFilePermission.{OTHERS_READ, OTHERS_WRITE}
import java.nio.file.{Files, Path, Paths}

import scala.util.Using
import scala.util.control.NonFatal

import io.interlock.coordinator.CoordinatorException

/** Gives the password of a database user. Implementations have a constructor without parameters and
  * are thread-safe. They are asked for every new connection, so that the password may change.
  */
trait CredentialProvider {

  /** @param name
    *   the coordinator's logical name
    */
  def password(name: String, user: String): String
}

private[postgres] object CredentialProvider {

  /** A provider of the class that the user names. Its exceptions are replaced, since they may hold
    * secrets.
    */
  def ofClass(className: String, refused: String => CoordinatorException): CredentialProvider = {
    val provider =
      try loader.loadClass(className).getDeclaredConstructor().newInstance()
      catch { case NonFatal(_) => throw refused("the class cannot be loaded and made") }
    provider match {
      case found: CredentialProvider => guarded(found)
      case _ => throw refused(s"the class is no ${classOf[CredentialProvider].getName}")
    }
  }

  /** The first line of a file, which only its owner may be able to read. */
  def ofFile(file: String, refused: String => CoordinatorException): CredentialProvider = {
    val path = Paths.get(file)
    (_, _) => {
      if (!Files.isReadable(path)) throw refused("the file cannot be read")
      if (openToOthers(path))
        throw refused("every user of the machine can open the file: chmod 600")
      Using.resource(Files.newBufferedReader(path, UTF_8))(reader => Option(reader.readLine()))
        .filter(_.nonEmpty)
        .getOrElse(throw refused("the first line of the file is empty"))
    }
  }

  def ofEnvironment(variable: String, refused: String => CoordinatorException): CredentialProvider =
    (_, _) =>
      sys.env.getOrElse(variable, throw refused("the environment has no variable of that name"))

  private def guarded(provider: CredentialProvider): CredentialProvider = (name, user) =>
    try Option(provider.password(name, user)).getOrElse(throw new NoSuchElementException)
    catch {
      case NonFatal(e) =>
        throw new CoordinatorException(
          "INTERLOCK_COORDINATOR_CREDENTIALS",
          Map(
            "coordinator" -> name,
            "provider" -> provider.getClass.getName,
            "error" -> e.getClass.getName
          )
        )
    }

  private def openToOthers(path: Path): Boolean =
    path.getFileSystem.supportedFileAttributeViews().contains("posix") && {
      val permissions = Files.getPosixFilePermissions(path)
      permissions.contains(OTHERS_READ) || permissions.contains(OTHERS_WRITE)
    }

  private def loader: ClassLoader =
    Option(Thread.currentThread().getContextClassLoader).getOrElse(getClass.getClassLoader)
}
