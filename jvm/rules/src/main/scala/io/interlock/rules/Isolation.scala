package io.interlock.rules

/** Delta's isolation levels, by their names. */
object Isolation {

  /** Whether an attempt should have read the rows that a winner added and that its predicates select.
    *
    * @param isBlindAppend
    *   whether the winner had read nothing: then it counts as committed after the attempt
    * @param changesMetadata
    *   whether the attempt changes the table's metadata, before which nothing moves
    */
  def countsAdded(level: String, isBlindAppend: Boolean, changesMetadata: Boolean): Boolean =
    level match {
      case "SnapshotIsolation" => false
      case "WriteSerializable" if !changesMetadata => !isBlindAppend
      case _ => true
    }
}
