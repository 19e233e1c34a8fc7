package io.interlock.links

import scala.jdk.CollectionConverters._

import org.apache.xbean.asm9.tree._
import org.apache.xbean.asm9.{
  ClassReader,
  ClassVisitor,
  FieldVisitor,
  Handle,
  MethodVisitor,
  Opcodes,
  Type
}

/** What of a class file matters to the classes that are linked to it. Names have slashes, as in
  * `java/lang/Object`.
  *
  * @param parents
  *   the superclass, if there is one, and the interfaces
  * @param members
  *   access flags of methods and fields
  */
final private[links] case class ClassFile(
    name: String,
    access: Int,
    parents: Seq[String],
    members: Map[Member, Int]
) {
  def isInterface: Boolean = (access & Opcodes.ACC_INTERFACE) != 0
  def isAbstract: Boolean = (access & Opcodes.ACC_ABSTRACT) != 0
}

/** A method, or a field, whose descriptor has no parentheses. */
final private[links] case class Member(name: String, descriptor: String)

/** A use of a member of a class. */
final private[links] case class Use(owner: String, member: Member, isStatic: Boolean)

private[links] object ClassFile {
  private val Static = Set(Opcodes.INVOKESTATIC, Opcodes.GETSTATIC, Opcodes.PUTSTATIC)
  private val StaticHandles =
    Set(Opcodes.H_INVOKESTATIC, Opcodes.H_GETSTATIC, Opcodes.H_PUTSTATIC)

  /** By a visitor of its own: a tree would decode annotations too, and Scala's are long. */
  def of(bytes: Array[Byte]): ClassFile = {
    val members = Map.newBuilder[Member, Int]
    val reader = new ClassReader(bytes)
    val visitor = new ClassVisitor(Opcodes.ASM9) {
      override def visitMethod(
          access: Int,
          name: String,
          descriptor: String,
          signature: String,
          exceptions: Array[String]
      ): MethodVisitor = {
        members += Member(name, descriptor) -> access
        null
      }
      override def visitField(
          access: Int,
          name: String,
          descriptor: String,
          signature: String,
          value: Any
      ): FieldVisitor = {
        members += Member(name, descriptor) -> access
        null
      }
    }
    reader.accept(visitor, ClassReader.SKIP_CODE)
    val parents = Option(reader.getSuperName).toSeq ++ reader.getInterfaces
    ClassFile(reader.getClassName, reader.getAccess, parents, members.result())
  }

  /** The classes and members that the code of a class names. */
  def uses(bytes: Array[Byte]): (Set[String], Set[Use]) = {
    val node = new ClassNode
    new ClassReader(bytes).accept(node, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    val methods = node.methods.asScala.toSeq
    val caught = methods.flatMap(_.tryCatchBlocks.asScala).flatMap(block => Option(block.`type`))
    val (classes, members) = methods.flatMap(_.instructions.asScala).flatMap {
      case call: MethodInsnNode =>
        Seq(member(call.owner, call.name, call.desc, Static(call.getOpcode)))
      case field: FieldInsnNode =>
        Seq(member(field.owner, field.name, field.desc, Static(field.getOpcode)))
      case named: TypeInsnNode => constant(Type.getObjectType(named.desc))
      case loaded: LdcInsnNode => constant(loaded.cst)
      case dynamic: InvokeDynamicInsnNode =>
        (dynamic.bsm +: dynamic.bsmArgs.toSeq).flatMap(constant)
      case _ => Nil
    }.partitionMap(identity)
    ((classes ++ caught).toSet, members.filterNot(_.owner.startsWith("[")).toSet)
  }

  private def member(owner: String, name: String, descriptor: String, isStatic: Boolean) =
    Right(Use(owner, Member(name, descriptor), isStatic))

  /** The class or member that a constant names. */
  private def constant(value: Any): Seq[Either[String, Use]] = value match {
    case h: Handle => Seq(member(h.getOwner, h.getName, h.getDesc, StaticHandles(h.getTag)))
    case named: Type if named.getSort == Type.OBJECT => Seq(Left(named.getInternalName))
    case _ => Nil
  }
}
