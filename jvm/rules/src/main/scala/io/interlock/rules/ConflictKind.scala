package io.interlock.rules

/** Which of Delta's public conflict errors a FAIL is raised as (design, section 6). */
sealed abstract class ConflictKind(val condition: String) extends Product with Serializable

object ConflictKind {

  /** The winner added data that the attempt should have seen. */
  case object ConcurrentAppend extends ConflictKind("INTERLOCK_CONCURRENT_APPEND")

  /** The winner removed or moved data that the attempt relies on. */
  case object ConcurrentDeleteRead extends ConflictKind("INTERLOCK_CONCURRENT_DELETE_READ")

  /** Both removed a file, and the attempt has not read it; or two compactions of one scope. */
  case object ConcurrentDeleteDelete extends ConflictKind("INTERLOCK_CONCURRENT_DELETE_DELETE")

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
  ): ConflictKind = {
    val laterCompacts = OperationClass.compactions(later)
    if (laterCompacts && OperationClass.compactions(earlier)) ConcurrentDeleteDelete
    else if (laterCompacts && winnerRemoved) ConcurrentDeleteRead
    else if (winnerAddedData) ConcurrentAppend
    else if (onlyRemove) ConcurrentDeleteDelete
    else ConcurrentDeleteRead
  }
}
