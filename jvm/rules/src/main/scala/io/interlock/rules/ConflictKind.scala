package io.interlock.rules

/** Delta's public conflict errors, by which every rejected commit is raised (design, section 6). */
sealed abstract class ConflictKind extends Product with Serializable {

  /** Delta's name for it. */
  def name: String = productPrefix
}

object ConflictKind {

  /** What Interlock raises itself, with its condition in the error catalogue. */
  sealed abstract class Raised(val condition: String) extends ConflictKind

  /** What a FAIL of a policy is raised as. */
  sealed abstract class OfData(condition: String) extends Raised(condition)

  /** The winner added data that the attempt should have seen. */
  case object ConcurrentAppend extends OfData("INTERLOCK_CONCURRENT_APPEND")

  /** The winner removed or moved data that the attempt relies on. */
  case object ConcurrentDeleteRead extends OfData("INTERLOCK_CONCURRENT_DELETE_READ")

  /** Both removed a file, and the attempt has not read it; or two compactions of one scope. */
  case object ConcurrentDeleteDelete extends OfData("INTERLOCK_CONCURRENT_DELETE_DELETE")

  /** Any commit beside RESTORE, CLONE or CONVERT; for others, one that the log has no more. */
  case object ConcurrentWrite extends Raised("INTERLOCK_CONCURRENT_WRITE")

  /** Two streaming queries with one checkpoint. */
  case object ConcurrentTransaction extends ConflictKind
  case object MetadataChanged extends ConflictKind
  case object ProtocolChanged extends ConflictKind

  private val all = Seq(
    ConcurrentAppend,
    ConcurrentDeleteRead,
    ConcurrentDeleteDelete,
    ConcurrentWrite,
    ConcurrentTransaction,
    MetadataChanged,
    ProtocolChanged
  )

  def byName(name: String): Option[ConflictKind] = all.find(_.name == name)

  /** @param winnerAddedData
    *   whether the winner added files as a change of data; compactions never do
    * @param winnerRemoved
    *   whether the winner removed files
    * @param onlyRemove
    *   whether both removed a file and the attempt has read none that the winner removed
    */
  def of(
      earlier: OperationClass,
      later: OperationClass,
      winnerAddedData: Boolean,
      winnerRemoved: Boolean,
      onlyRemove: Boolean
  ): OfData = {
    val laterCompacts = OperationClass.compactions(later)
    if (laterCompacts && OperationClass.compactions(earlier)) ConcurrentDeleteDelete
    else if (laterCompacts && winnerRemoved) ConcurrentDeleteRead
    else if (winnerAddedData) ConcurrentAppend
    else if (onlyRemove) ConcurrentDeleteDelete
    else ConcurrentDeleteRead
  }
}
