package io.interlock.links

import scala.annotation.nowarn
import scala.collection.mutable

import org.apache.xbean.asm9.{
  ClassReader,
  ClassVisitor,
  FieldVisitor,
  Handle,
  Label,
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
  private val WithoutCode =
    ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES
  private val Api = Opcodes.ASM9

  def of(bytes: Array[Byte]): ClassFile = {
    val reader = new ClassReader(bytes)
    val members = Map.newBuilder[Member, Int]
    reader.accept(
      new ClassVisitor(Api) {
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
            value: Object
        ): FieldVisitor = {
          members += Member(name, descriptor) -> access
          null
        }
      },
      WithoutCode
    )
    val parents = Option(reader.getSuperName).toSeq ++ reader.getInterfaces
    ClassFile(reader.getClassName, reader.getAccess, parents, members.result())
  }

  /** The classes and members that the code of a class names. */
  def uses(bytes: Array[Byte]): (Set[String], Set[Use]) = {
    val classes = mutable.Set.empty[String]
    val members = mutable.Set.empty[Use]
    def use(owner: String, name: String, descriptor: String, isStatic: Boolean): Unit =
      if (!owner.startsWith("[")) members += Use(owner, Member(name, descriptor), isStatic): Unit
    def handle(constant: Any): Unit = constant match {
      case h: Handle =>
        val isStatic = Set(Opcodes.H_INVOKESTATIC, Opcodes.H_GETSTATIC, Opcodes.H_PUTSTATIC)
        use(h.getOwner, h.getName, h.getDesc, isStatic(h.getTag))
      case t: Type if t.getSort == Type.OBJECT => classes += t.getInternalName: Unit
      case _ =>
    }
    val code = new MethodVisitor(Api) {
      override def visitMethodInsn(
          opcode: Int,
          owner: String,
          name: String,
          descriptor: String,
          isInterface: Boolean
      ): Unit = use(owner, name, descriptor, opcode == Opcodes.INVOKESTATIC)

      override def visitFieldInsn(opcode: Int, owner: String, name: String, d: String): Unit =
        use(owner, name, d, opcode == Opcodes.GETSTATIC || opcode == Opcodes.PUTSTATIC)

      override def visitTypeInsn(opcode: Int, name: String): Unit =
        handle(Type.getObjectType(name))

      override def visitLdcInsn(value: Any): Unit = handle(value)

      @nowarn("msg=never used")
      override def visitInvokeDynamicInsn(
          name: String,
          descriptor: String,
          bootstrap: Handle,
          arguments: Object*
      ): Unit = (bootstrap +: arguments).foreach(handle)

      override def visitTryCatchBlock(start: Label, end: Label, by: Label, name: String): Unit =
        Option(name).foreach(caught => handle(Type.getObjectType(caught)))
    }
    val reader = new ClassReader(bytes)
    reader.accept(
      new ClassVisitor(Api) {
        override def visitMethod(
            access: Int,
            name: String,
            descriptor: String,
            signature: String,
            exceptions: Array[String]
        ): MethodVisitor = code
      },
      ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES
    )
    (classes.toSet, members.toSet)
  }
}
