package io.interlock.links

import java.io.Closeable
import java.net.{JarURLConnection, URL}
import java.nio.file.Path
import java.util.zip.{ZipEntry, ZipFile}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.xbean.asm9.Opcodes

/** The classes that a loader finds. For use by one thread. */
final class Classes(loader: ClassLoader) extends Closeable {
  private val SparkFolder = "org/apache/spark/"
  private val opened = mutable.Map.empty[Path, ZipFile]
  private val read = mutable.Map.empty[String, Option[ClassFile]]
  private val lineages = mutable.Map.empty[String, LazyList[ClassFile]]

  /** The checksum by which the class's jar lists it, found without reading the class; none if no jar
    * has the class.
    */
  private[links] def checksum(name: String): Option[Long] =
    entry(name).map { case (_, entry) => entry.getCrc }

  private[links] def get(name: String): Option[ClassFile] =
    read.getOrElseUpdate(name, bytes(name).map(ClassFile.of))

  private[links] def bytes(name: String): Option[Array[Byte]] =
    entry(name).map { case (jar, entry) => jar.getInputStream(entry) }
      .orElse(Option(loader.getResourceAsStream(s"$name.class")))
      .map(Using.resource(_)(_.readAllBytes()))

  /** In the first jar that has it, in the loader's order: a jar before that of Spark or Delta may be a
    * patch of it. For Delta's classes the loader is asked, which takes longer and misses no jar.
    */
  private def entry(name: String): Option[(ZipFile, ZipEntry)] = {
    val path = s"$name.class"
    def in(jar: ZipFile) = Option(jar.getEntry(path)).map(jar -> _)
    val isOfSpark = name.startsWith(SparkFolder) && !name.contains("/delta/")
    val holders = if (isOfSpark) jarsOfSpark else Nil
    holders.iterator.flatMap(in).nextOption().orElse(jar(loader.getResource(path)).flatMap(in))
  }

  /** Those that list Spark's folder, up to where the loader has something else than a jar. */
  private lazy val jarsOfSpark: Seq[ZipFile] =
    loader.getResources(SparkFolder).asScala.map(jar).takeWhile(_.nonEmpty).flatten.toSeq

  private def jar(resource: URL): Option[ZipFile] =
    Option(resource).map(_.openConnection()).collect {
      case connection: JarURLConnection if connection.getJarFileURL.getProtocol == "file" =>
        val file = Path.of(connection.getJarFileURL.toURI)
        opened.getOrElseUpdate(file, new ZipFile(file.toFile))
    }

  /** A class and all that it stands on, itself first; what is not there is left out. Read as far as
    * it is asked for.
    */
  private[links] def lineage(name: String): LazyList[ClassFile] =
    lineages.getOrElseUpdate(name, lineage(List(name), Set.empty))

  private def lineage(names: List[String], seen: Set[String]): LazyList[ClassFile] =
    names.filterNot(seen) match {
      case Nil => LazyList.empty
      case next :: rest =>
        val file = get(next)
        file.to(LazyList) #::: lineage(rest ++ file.toSeq.flatMap(_.parents), seen + next)
    }

  /** The class that has a member which another class may use by the name of `owner`, and its access
    * flags.
    */
  private[links] def find(owner: String, member: Member): Option[(ClassFile, Int)] = {
    val isInherited = member.name != "<init>"
    (if (isInherited) lineage(owner) else get(owner).toSeq).iterator
      .flatMap(file => file.members.get(member).map(file -> _))
      .find { case (_, access) => (access & Opcodes.ACC_PRIVATE) == 0 }
  }

  /** The methods that a class has to have and has not. */
  private[links] def unimplemented(name: String): Seq[Use] = {
    def isAbstract(access: Int) = (access & Opcodes.ACC_ABSTRACT) != 0
    val files = lineage(name).toVector
    val implemented = files.flatMap(_.members).collect {
      case (member, access) if !isAbstract(access) => member
    }.toSet
    for {
      file <- files
      (member, access) <- file.members.toSeq
      if isAbstract(access) && !implemented(member)
    } yield Use(file.name, member, isStatic = false)
  }

  override def close(): Unit = opened.values.foreach(_.close())
}
