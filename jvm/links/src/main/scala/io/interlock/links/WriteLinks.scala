package io.interlock.links

import java.net.URLClassLoader
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** Writes down, at the build, what classes use of Spark and Delta. */
object WriteLinks {

  /** @param arguments
    *   the folder to write to, the class path with Spark and Delta, and the folders of our classes
    */
  def main(arguments: Array[String]): Unit = {
    val (target, classPath, ours) = (arguments(0), arguments(1), arguments.drop(2).toSeq)
    val urls = (ours ++ classPath.split(java.io.File.pathSeparator)).map(Path.of(_).toUri.toURL)
    Using.resource(new URLClassLoader(urls.toArray, ClassLoader.getPlatformClassLoader)) { loader =>
      Using.resource(new Classes(loader)) { classes =>
        val (found, lines) = new WriteLinks(classes, ours.flatMap(names)).all
        write(Path.of(target, Links.ClassesResource), found.map(Links.asText))
        write(Path.of(target, Links.MembersResource), lines.map(Links.asText))
      }
    }
  }

  private def names(folder: String): Seq[String] = {
    val root = Path.of(folder)
    Using.resource(Files.walk(root))(
      _.iterator.asScala.map(root.relativize(_).toString).filter(_.endsWith(".class"))
        .map(_.stripSuffix(".class").replace('\\', '/')).toVector.sorted
    )
  }

  private def write(file: Path, lines: Seq[String]): Unit = {
    Files.createDirectories(file.getParent)
    val _ = Files.write(file, lines.asJava)
  }
}

final private class WriteLinks(classes: Classes, ours: Seq[String]) {
  import Links._

  private val isOurs = ours.toSet

  private def isTheirs(name: String) = isForeign(name) && !isOurs(name)

  def all: (Seq[Class], Seq[Line]) = {
    val (named, uses) = ours.flatMap(classes.bytes).map(ClassFile.uses).unzip
    val used = uses.flatten.flatMap(foreign).distinct
    val own =
      ours.flatMap(classes.get).map(file => file -> foreignParents(file)).filter(_._2.nonEmpty)
    val overridden = own.flatMap { case (file, parents) =>
      file.members.keys.filter(isMethodOf(parents, _))
        .map(Overridden(file.name, parents, _))
    }
    val concrete = own.collect {
      case (file, parents) if !file.isAbstract =>
        Concrete(file.name, parents)
    }
    val names = named.flatten ++ used.map(_.owner) ++ own.flatMap(_._2)
    val lines = used.map(Used) ++ overridden ++ concrete
    (withParents(names.filter(isTheirs).distinct), lines.distinct.sortBy(asText(_: Line)))
  }

  /** The use by the name of the class of Spark or Delta that has the member; none if it is ours, or
    * of Java or Scala.
    */
  private def foreign(use: Use): Option[Use] =
    classes.find(use.owner, use.member).flatMap { case (file, _) =>
      if (!isTheirs(file.name)) None
      else if (isTheirs(use.owner)) Some(use)
      else Some(use.copy(owner = file.name))
    }

  /** The nearest classes of Spark and Delta that one of ours stands on. */
  private def foreignParents(file: ClassFile): Seq[String] = file.parents.flatMap { parent =>
    if (isTheirs(parent)) Seq(parent)
    else if (isOurs(parent)) classes.get(parent).toSeq.flatMap(foreignParents)
    else Nil
  }.distinct

  private def isMethodOf(parents: Seq[String], member: Member) =
    !member.name.startsWith("<") && parents.flatMap(classes.find(_, member))
      .exists { case (file, access) => isTheirs(file.name) && !isStatic(access) }

  private def withParents(names: Seq[String]): Seq[Class] = {
    val isNamed = names.toSet
    for {
      file <-
        names.flatMap(classes.lineage).filter(file => isTheirs(file.name)).distinct.sortBy(_.name)
      checksum <- classes.checksum(file.name)
      parents = file.parents.filter(isTheirs)
    } yield Class(file.name, checksum, file.isInterface, isNamed(file.name), parents)
  }
}
