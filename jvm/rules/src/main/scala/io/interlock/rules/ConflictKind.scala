package io.interlock.rules

/** The kinds of Delta's public conflict errors; every rejected commit is raised as one of them
  * (docs/errors.md).
  */
sealed abstract class ConflictKind extends Product with Serializable {

  /** Delta's name for it. */
  def name: String = productPrefix
}

object ConflictKind {

  /** A kind that Interlock raises itself, with its condition in the error catalogue. */
  sealed abstract class Raised(val condition: String) extends ConflictKind

  /** A kind for a rejection by the policy. */
  sealed abstract class OfData(condition: String) extends Raised(condition)

  /** The winner added data that the attempt should have seen. */
  case object ConcurrentAppend extends OfData("INTERLOCK_CONCURRENT_APPEND")

  /** The winner removed or moved data that the attempt relies on. */
  case object ConcurrentDeleteRead extends OfData("INTERLOCK_CONCURRENT_DELETE_READ")

  /** Both removed the same file, which the attempt has not read; or both are compactions of the
    * same files.
    */
  case object ConcurrentDeleteDelete extends OfData("INTERLOCK_CONCURRENT_DELETE_DELETE")

  /** Any commit during a RESTORE, CLONE or CONVERT; for other jobs, a commit that was already
    * removed from the log.
    */
  case object ConcurrentWrite extends Raised("INTERLOCK_CONCURRENT_WRITE")

  /** Two streaming queries with the same checkpoint. */
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
