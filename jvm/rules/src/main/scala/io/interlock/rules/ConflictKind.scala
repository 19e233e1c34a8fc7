package io.interlock.rules

/** The kinds of Delta's public conflict errors; every rejected commit is raised as one of them
  * (docs/errors.md).
  *
  * @param did
  *   what the winner did, as a clause to follow its name
  */
sealed abstract class ConflictKind(val did: String) extends Product with Serializable {

  /** Delta's name for it. */
  def name: String = productPrefix
}

object ConflictKind {

  /** A kind that Interlock raises itself, with its condition in the error catalogue. */
  sealed abstract class Raised(val condition: String, did: String) extends ConflictKind(did)

  /** A kind for a rejection by the policy. */
  sealed abstract class OfData(condition: String, did: String) extends Raised(condition, did)

  /** The winner added data that the attempt should have seen. */
  case object ConcurrentAppend extends OfData("INTERLOCK_CONCURRENT_APPEND", "added data")

  /** The winner removed or moved data that the attempt relies on. */
  case object ConcurrentDeleteRead
      extends OfData("INTERLOCK_CONCURRENT_DELETE_READ", "changed data files")

  /** Both removed the same file, which the attempt has not read; or both are compactions of the
    * same files.
    */
  case object ConcurrentDeleteDelete
      extends OfData("INTERLOCK_CONCURRENT_DELETE_DELETE", "rewrote files that it rewrites too")

  /** Any commit during a RESTORE, CLONE or CONVERT; for other jobs, a commit that was already
    * removed from the log.
    */
  case object ConcurrentWrite extends Raised("INTERLOCK_CONCURRENT_WRITE", "committed while it ran")

  /** Two streaming queries with the same checkpoint. */
  case object ConcurrentTransaction
      extends ConflictKind("has written this batch of the stream already")

  case object MetadataChanged
      extends Raised(
        "INTERLOCK_METADATA_CHANGED",
        "changed the table's schema, properties or policy"
      )

  case object ProtocolChanged
      extends ConflictKind("created the table or changed which features it has")

  /** A kind that only another version of Delta has. */
  final case class Other(override val name: String) extends ConflictKind("is in conflict with it")

  private val all = Seq(
    ConcurrentAppend,
    ConcurrentDeleteRead,
    ConcurrentDeleteDelete,
    ConcurrentWrite,
    ConcurrentTransaction,
    MetadataChanged,
    ProtocolChanged
  )

  def byName(name: String): ConflictKind = all.find(_.name == name).getOrElse(Other(name))

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
