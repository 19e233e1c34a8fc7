package io.interlock.links

import java.io.{ByteArrayInputStream, InputStream}
import java.net.URL

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes}

/** The classes of the real Delta, one of which is changed. */
class LinksSuite extends munit.FunSuite {
  private val links = Links.ofJar()
  private val DeltaLog = "org/apache/spark/sql/delta/DeltaLog"

  /** Tells no checksums, so that all classes are read. */
  final private class Changed(name: String, bytes: Option[Array[Byte]])
      extends ClassLoader(getClass.getClassLoader) {
    override def getResource(file: String): URL = null
    override def getResourceAsStream(file: String): InputStream =
      if (file == s"$name.class") bytes.map(new ByteArrayInputStream(_)).orNull
      else getParent.getResourceAsStream(file)
  }

  private def missing(loader: ClassLoader): Seq[String] = {
    val classes = new Classes(loader)
    try links.missing(classes)
    finally classes.close()
  }

  /** What is missing if each method of a class is written by `write`, and `more` are added. */
  private def missingAfter(name: String, more: ClassWriter => Unit = _ => ())(
      write: (Int, String, String) => Option[(Int, String, String)] = (a, n, d) => Some((a, n, d))
  ): Seq[String] = {
    val writer = new ClassWriter(0)
    val original = getClass.getClassLoader.getResourceAsStream(s"$name.class").readAllBytes()
    new ClassReader(original).accept(
      new ClassVisitor(Opcodes.ASM9, writer) {
        override def visitMethod(
            access: Int,
            name: String,
            descriptor: String,
            signature: String,
            exceptions: Array[String]
        ): MethodVisitor = write(access, name, descriptor).map { case (access, name, descriptor) =>
          super.visitMethod(access, name, descriptor, signature, exceptions)
        }.orNull
      },
      ClassReader.SKIP_CODE
    )
    more(writer)
    missing(new Changed(name, Some(writer.toByteArray)))
  }

  test("nothing is missing in what it was built with, nor if a class is another one of same form") {
    assertEquals(missing(getClass.getClassLoader), Nil)
    assertEquals(missingAfter(DeltaLog)(), Nil)
  }

  test("a class that is gone") {
    assertEquals(
      missing(new Changed(DeltaLog, None)).filter(_.startsWith("class")),
      Seq("class org.apache.spark.sql.delta.DeltaLog is not there")
    )
  }

  test("a method that is renamed, or has another signature, or is static now") {
    val name = "isSameLogAs"
    val public = Opcodes.ACC_PUBLIC
    for (
      (access, renamed, arguments, told) <- Seq(
        (public, s"${name}2", s"(L$DeltaLog;)", "is not there"),
        (public, name, "()", "has another signature"),
        (public | Opcodes.ACC_STATIC, name, s"(L$DeltaLog;)", "is static now")
      )
    ) {
      val found = missingAfter(DeltaLog) { (a, n, d) =>
        Some(if (n == name) (access, renamed, s"${arguments}Z") else (a, n, d))
      }
      assertEquals(found, Seq(s"org.apache.spark.sql.delta.DeltaLog.$name(DeltaLog) $told"))
    }
  }

  test("a constructor is not that of the superclass") {
    val array = "org/apache/spark/sql/delta/deletionvectors/RoaringBitmapArray"
    val found = missingAfter(array) { (a, n, d) => Option.when(n != "<init>")((a, n, d)) }
    assertEquals(found, Seq(s"${array.replace('/', '.')}.<init>() has another signature"))
  }

  test("a new abstract method in a parser") {
    val found = missingAfter(
      "org/apache/spark/sql/catalyst/parser/ParserInterface",
      writer => {
        val access = Opcodes.ACC_PUBLIC | Opcodes.ACC_ABSTRACT
        val _ = writer.visitMethod(access, "splitStatements", "(Ljava/lang/String;)V", null, null)
      }
    )()
    val name = "org.apache.spark.sql.catalyst.parser.ParserInterface.splitStatements(String)"
    assert(found.nonEmpty)
    assert(found.forall(_.startsWith(s"$name is new and abstract, and io.interlock.")), found)
  }

  test("a method that Interlock overrides is renamed, or final") {
    val checker = "org/apache/spark/sql/delta/ConflictChecker"
    val name = "checkProtocolCompatibility"
    for (
      (access, renamed, told) <- Seq(
        (Opcodes.ACC_PROTECTED, s"${name}2", "is not there"),
        (Opcodes.ACC_PROTECTED | Opcodes.ACC_FINAL, name, "is final")
      )
    ) {
      val found = missingAfter(checker) { (a, n, d) =>
        Some(if (n == name) (access, renamed, d) else (a, n, d))
      }
      val by = "org.apache.spark.sql.delta.interlock.judging.InterlockConflictChecker"
      val sentence =
        s"org.apache.spark.sql.delta.ConflictChecker.$name() $told, and $by overrides it"
      assert(found.contains(sentence), found)
    }
  }
}
