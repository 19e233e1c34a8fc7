package io.interlock.rules.advice

import io.interlock.rules.OperationClass

/** A rejected commit, as far as advice depends on it.
  *
  * @param policy
  *   that of the table when it was rejected
  * @param earlier
  *   the class of the winner
  * @param later
  *   the class of the attempt
  * @param partitionColumns
  *   those of the table
  * @param predicate
  *   the attempt's predicate that selected rows of the winner, or could not be decided
  * @param undecided
  *   whether it could not be decided
  */
final case class Rejection(
    kind: Rejection.Kind,
    policy: String,
    earlier: Option[OperationClass],
    later: Option[OperationClass],
    partitionColumns: Seq[String],
    predicate: Option[String],
    undecided: Boolean
) {
  def isCompaction: Boolean = later.exists(OperationClass.compactions)
}

object Rejection {

  /** Delta's public conflict errors, by which every rejected commit is raised. */
  sealed abstract class Kind(val name: String, val isOfData: Boolean)

  object Kind {
    case object ConcurrentAppend extends Kind("ConcurrentAppend", true)
    case object ConcurrentDeleteRead extends Kind("ConcurrentDeleteRead", true)
    case object ConcurrentDeleteDelete extends Kind("ConcurrentDeleteDelete", true)

    /** Any commit beside RESTORE, CLONE or CONVERT; for others, one that the log has no more. */
    case object ConcurrentWrite extends Kind("ConcurrentWrite", false)

    /** Two streaming queries with one checkpoint. */
    case object ConcurrentTransaction extends Kind("ConcurrentTransaction", false)
    case object MetadataChanged extends Kind("MetadataChanged", false)
    case object ProtocolChanged extends Kind("ProtocolChanged", false)

    private val all = Seq(
      ConcurrentAppend,
      ConcurrentDeleteRead,
      ConcurrentDeleteDelete,
      ConcurrentWrite,
      ConcurrentTransaction,
      MetadataChanged,
      ProtocolChanged
    )

    def byName(name: String): Option[Kind] = all.find(_.name == name)
  }
}
