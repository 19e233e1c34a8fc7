package io.interlock.links

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

import org.apache.xbean.asm9.{Opcodes, Type}

/** What the jar of Interlock uses of Spark and Delta, as the build has written it down in two
  * resources (see [[WriteLinks]]): classes and their checksums, then members.
  *
  * Whether Interlock works with a Delta, or with a patch of Spark, is a question of these and not of
  * a version's number.
  */
final class Links private[links] (classes: Seq[Links.Class], members: => Seq[Links.Line]) {
  import Links._

  /** What is missing, or is another thing than at the build: one sentence each, in order. Classes
    * that are the same, byte by byte, are not read.
    */
  def missing(found: Classes): Seq[String] = {
    val changed = classes.filterNot(c => found.checksum(c.name).contains(c.checksum))
    if (changed.isEmpty) Nil else missing(found, changed.map(_.name).toSet)
  }

  private def missing(found: Classes, changed: Set[String]): Seq[String] = {
    val parents = classes.map(c => c.name -> c.parents).toMap
    val isChanged = scala.collection.mutable.Map.empty[String, Boolean]
    def isAffected(name: String): Boolean = isChanged.getOrElseUpdate(
      name,
      changed(name) || parents.getOrElse(name, Nil).exists(isAffected)
    )
    val gone = changed.filter(found.get(_).isEmpty)
    val ofClasses = classes.filter(c => c.isNamed && changed(c.name)).flatMap { c =>
      found.get(c.name) match {
        case None => Some(s"class ${dotted(c.name)} is not there")
        case Some(now) if now.isInterface != c.isInterface =>
          Some(s"${dotted(c.name)} is ${if (now.isInterface) "an interface" else "a class"} now")
        case _ => None
      }
    }
    val ofMembers = members.collect {
      case Used(use) if isAffected(use.owner) && !gone(use.owner) => unlike(found, use)
      case Overridden(by, parents, member) if parents.exists(isAffected) =>
        cannotOverride(found, by, parents, member)
      case Concrete(name, parents) if parents.exists(isAffected) =>
        found.unimplemented(name).filter(use => isForeign(use.owner)).map(use =>
          s"${text(use)} is new and abstract, and ${dotted(name)} has no such method"
        )
    }.flatten
    (ofClasses ++ ofMembers).distinct
  }

  private def unlike(found: Classes, use: Use): Option[String] =
    found.find(use.owner, use.member) match {
      case None => Some(s"${text(use)} ${absence(found, use.owner, use.member)}")
      case Some((_, access)) if isStatic(access) != use.isStatic =>
        Some(s"${text(use)} is ${if (use.isStatic) "not static" else "static"} now")
      case _ => None
    }

  private def cannotOverride(
      found: Classes,
      by: String,
      parents: Seq[String],
      member: Member
  ): Option[String] = {
    val all = parents.flatMap(found.find(_, member))
    def told(what: String) = s"${text(Use(parents.head, member, isStatic = false))} $what, " +
      s"and ${dotted(by)} overrides it"
    if (all.isEmpty) Some(told(absence(found, parents.head, member)))
    else if (all.exists { case (_, access) => (access & Opcodes.ACC_FINAL) != 0 })
      Some(told("is final"))
    else None
  }

  private def absence(found: Classes, owner: String, member: Member): String =
    if (found.lineage(owner).exists(_.members.keys.exists(_.name == member.name)))
      "has another signature"
    else "is not there"
}

object Links {

  /** A class of Spark or Delta.
    *
    * @param isNamed
    *   whether our classes name it; otherwise one that they name stands on it
    */
  final private[links] case class Class(
      name: String,
      checksum: Long,
      isInterface: Boolean,
      isNamed: Boolean,
      parents: Seq[String]
  )

  sealed private[links] trait Line
  final private[links] case class Used(use: Use) extends Line

  /** A method of ours that stands in the place of one of Spark or Delta.
    *
    * @param parents
    *   of our class, in Spark and Delta
    */
  final private[links] case class Overridden(by: String, parents: Seq[String], member: Member)
      extends Line

  /** A class of ours of which there are instances. */
  final private[links] case class Concrete(name: String, parents: Seq[String]) extends Line

  private[links] val ClassesResource = "io/interlock/links/classes.tsv"
  private[links] val MembersResource = "io/interlock/links/members.tsv"

  /** Those of the jar that this class stands in. */
  def ofJar(): Links =
    new Links(lines(ClassesResource).map(asClass), lines(MembersResource).map(asLine))

  private def lines(resource: String): Seq[Array[String]] = {
    val stream = getClass.getClassLoader.getResourceAsStream(resource)
    new String(Using.resource(stream)(_.readAllBytes()), UTF_8).split('\n').toSeq.map(_.split('\t'))
  }

  private[links] def asText(line: Class): String =
    Seq[Any](
      line.name,
      line.checksum,
      line.isInterface,
      line.isNamed,
      line.parents.mkString(",")
    ).mkString("\t")

  private def asClass(fields: Array[String]): Class = Class(
    fields(0),
    fields(1).toLong,
    fields(2).toBoolean,
    fields(3).toBoolean,
    fields.lift(4).toSeq.flatMap(_.split(','))
  )

  private[links] def asText(line: Line): String = (line match {
    case Used(use) =>
      Seq[Any]("use", use.owner, use.member.name, use.member.descriptor, use.isStatic)
    case Overridden(by, parents, member) =>
      Seq("override", by, parents.mkString(","), member.name, member.descriptor)
    case Concrete(name, parents) => Seq("class", name, parents.mkString(","))
  }).mkString("\t")

  private def asLine(fields: Array[String]): Line = fields match {
    case Array("use", owner, name, descriptor, isStatic) =>
      Used(Use(owner, Member(name, descriptor), isStatic.toBoolean))
    case Array("override", by, parents, name, descriptor) =>
      Overridden(by, parents.split(',').toSeq, Member(name, descriptor))
    case Array("class", name, parents) => Concrete(name, parents.split(',').toSeq)
    case _ => sys.error(s"$MembersResource has a line of another form: ${fields.mkString(" ")}")
  }

  /** Whether a class belongs to Spark or Delta, or else to Interlock, which also has some in their
    * packages.
    */
  private[links] def isForeign(name: String): Boolean =
    name.startsWith("org/apache/spark/") || name.startsWith("io/delta/")

  private[links] def isStatic(access: Int): Boolean = (access & Opcodes.ACC_STATIC) != 0

  private def dotted(name: String) = name.replace('/', '.').stripSuffix("$")

  /** As in `org.apache.spark.sql.delta.DeltaLog.update(boolean, Option)`. */
  private def text(use: Use): String = {
    val Use(owner, Member(name, descriptor), _) = use
    val arguments =
      if (!descriptor.startsWith("(")) ""
      else Type.getArgumentTypes(descriptor).map(_.getClassName.split('.').last)
        .mkString("(", ", ", ")")
    s"${dotted(owner)}.$name$arguments"
  }
}
