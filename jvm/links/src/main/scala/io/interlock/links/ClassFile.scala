package io.interlock.links

import scala.jdk.CollectionConverters._

import org.apache.xbean.asm9.tree._
import org.apache.xbean.asm9.{ClassReader, Handle, Opcodes, Type}

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

  def of(bytes: Array[Byte]): ClassFile = {
    val node = read(bytes, ClassReader.SKIP_CODE)
    val methods = node.methods.asScala.map(m => Member(m.name, m.desc) -> m.access)
    val fields = node.fields.asScala.map(f => Member(f.name, f.desc) -> f.access)
    val parents = Option(node.superName).toSeq ++ node.interfaces.asScala
    ClassFile(node.name, node.access, parents, (methods ++ fields).toMap)
  }

  /** The classes and members that the code of a class names. */
  def uses(bytes: Array[Byte]): (Set[String], Set[Use]) = {
    val methods = read(bytes, 0).methods.asScala.toSeq
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

  private def read(bytes: Array[Byte], flags: Int): ClassNode = {
    val node = new ClassNode
    new ClassReader(bytes).accept(node, flags | ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    node
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
