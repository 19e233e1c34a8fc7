package io.interlock.coordinator.postgres

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}

import io.interlock.coordinator.CoordinatorException

class CredentialProviderSuite extends munit.FunSuite {
  private val secret = "hunter2"

  private def password(key: String, value: String): String = PostgresSettings
    .of("main", Map("url" -> "jdbc:postgresql://db/interlock", "user" -> "writer", key -> value))
    .credentials.password("main", "writer")

  private def refused(key: String, value: String): CoordinatorException = {
    val e = intercept[CoordinatorException](password(key, value))
    assert(!s"${e.getMessage}${e.getCause}".contains(secret), e.getMessage)
    e
  }

  private val file = FunFixture[Path](
    _ => Files.createTempFile("interlock-", ".password"),
    path => Files.deleteIfExists(path): Unit
  )

  private def write(path: Path, text: String, permissions: String): String = {
    Files.writeString(path, text)
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions)).toString
  }

  file.test("the first line of a file, read anew for each connection") { path =>
    Seq("one", "two\nmore", "s p:a'c\"e\r\n").foreach { text =>
      val name = write(path, text, "rw-r-----")
      assertEquals(password("passwordFile", name), text.linesIterator.next())
    }
  }

  file.test("a file that others may open is refused") { path =>
    val name = write(path, secret, "rw-r--r--")
    val e = refused("passwordFile", name)
    assertEquals(e.condition, "INTERLOCK_COORDINATOR_SETTING")
    assert(e.parameters("problem").contains("chmod 600"))
    write(path, secret, "rw-------")
    assertEquals(password("passwordFile", name), secret)
  }

  file.test("an empty file, or none, is refused") { path =>
    val name = write(path, s"\n$secret", "rw-------")
    assert(refused("passwordFile", name).parameters("problem").contains("empty"))
    assert(refused("passwordFile", s"$name.not").parameters("problem").contains("cannot be read"))
  }

  test("a variable of the environment") {
    assertEquals(password("passwordVariable", "PATH"), sys.env("PATH"))
    assertEquals(
      refused("passwordVariable", "NO_SUCH_VARIABLE").parameters("setting"),
      "spark.interlock.coordinator.main.passwordVariable"
    )
  }

  test("a class of the user") {
    assertEquals(password("credentialProvider", classOf[GoodProvider].getName), "main/writer")
  }

  test("what a class throws is not shown") {
    val e = refused("credentialProvider", classOf[LeakingProvider].getName)
    assertEquals(e.condition, "INTERLOCK_COORDINATOR_CREDENTIALS")
    assertEquals(e.parameters("error"), "java.lang.IllegalStateException")
  }

  test("a class that is none, or no provider, is refused") {
    Seq("no.such.Class", "java.lang.String", classOf[ThrowingConstructor].getName).foreach { name =>
      assertEquals(
        refused("credentialProvider", name).parameters("setting"),
        "spark.interlock.coordinator.main.credentialProvider"
      )
    }
  }
}

class GoodProvider extends CredentialProvider {
  override def password(name: String, user: String): String = s"$name/$user"
}

class LeakingProvider extends CredentialProvider {
  override def password(name: String, user: String): String =
    throw new IllegalStateException("the vault said: hunter2")
}

class ThrowingConstructor extends CredentialProvider {
  require(sys.env.isEmpty, "the vault said: hunter2")
  override def password(name: String, user: String): String = ""
}
