package org.apache.spark.sql.delta.interlock.commit

import io.interlock.spark.properties.{Exclusive, TablePolicy}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.{Action, Metadata, SetTransaction}

/** What the commits of an atomic block to several tables say of each other: each has, for each of the
  * other tables, a `txn` action with the version that the block makes there. So a snapshot tells,
  * without a look at old commits, with which versions of other tables it belongs together.
  */
private[interlock] object Siblings {
  private val Prefix = "interlock/"

  /** The actions of a commit, and those about the other tables.
    *
    * @param versions
    *   the versions that the block makes in the other tables, by their ids
    */
  def added(actions: Seq[Action], versions: Map[String, Long]): Seq[Action] =
    versions.toSeq.sorted.map { case (id, version) =>
      SetTransaction(Prefix + id, version, Some(System.currentTimeMillis()))
    } ++ actions

  /** The least versions of other tables, by their ids, to which a snapshot belongs. */
  def of(snapshot: Snapshot): Map[String, Long] =
    if (!mayHave(snapshot.metadata)) Map.empty
    else
      snapshot.setTransactions.collect {
        case SetTransaction(app, version, _) if app.startsWith(Prefix) =>
          app.stripPrefix(Prefix) -> version
      }.toMap

  /** Whether blocks over several tables can change a table. */
  def mayHave(table: Metadata): Boolean = Exclusive.of(table.configuration) &&
    TablePolicy.coordinatorOf(table.configuration).nonEmpty
}
