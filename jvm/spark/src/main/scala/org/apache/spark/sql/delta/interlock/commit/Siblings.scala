package org.apache.spark.sql.delta.interlock.commit

import scala.util.Try

import io.interlock.spark.properties.{Exclusive, TablePolicy}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.{Metadata, SetTransaction}

/** What the commits of an atomic block to several tables say of each other: each has, for each of the
  * other tables, a `txn` action with the version that the block makes there. So a snapshot tells,
  * without a look at old commits, with which versions of other tables it belongs together.
  */
object Siblings {
  private val Prefix = "interlock/"

  /** The actions of a commit about the other tables.
    *
    * @param versions
    *   the ids of the tables, and the versions that the block makes in them
    */
  def actions(versions: Seq[(String, Long)]): Seq[SetTransaction] = {
    // Copies of a folder have one id.
    val distinct = versions.groupBy(_._1).values.filter(_.size == 1).flatten
    distinct.toSeq.sorted.map { case (id, version) =>
      SetTransaction(Prefix + id, version, Some(System.currentTimeMillis()))
    }
  }

  /** The least versions of other tables, by their ids, to which a snapshot belongs. */
  def of(snapshot: Snapshot): Map[String, Long] =
    if (!mayHave(snapshot.metadata)) Map.empty
    else
      // Delta would compute what its checksum has.
      in(snapshot.checksumOpt.flatMap(_.setTransactions).getOrElse(snapshot.setTransactions))

  /** The same of a commit. */
  def in(numbered: Seq[SetTransaction]): Map[String, Long] = numbered.collect {
    case SetTransaction(app, version, _) if app.startsWith(Prefix) =>
      app.stripPrefix(Prefix) -> version
  }.toMap

  /** Whether blocks over several tables can change a table. */
  def mayHave(table: Metadata): Boolean = TablePolicy.coordinatorOf(table.configuration).nonEmpty &&
    Try(Exclusive.of(table.configuration)).getOrElse(false)
}
