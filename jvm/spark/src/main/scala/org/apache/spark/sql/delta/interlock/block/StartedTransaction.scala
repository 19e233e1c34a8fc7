package org.apache.spark.sql.delta.interlock.block

import scala.util.Try

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, OptimisticTransaction, Snapshot}

/** What Delta starts a transaction with.
  *
  * Delta gives the observer of a transaction only the function that makes it. What that function
  * has captured tells the table before Delta has listed its log.
  */
final private[interlock] case class StartedTransaction(
    log: DeltaLog,
    table: Option[CatalogTable],
    snapshot: Option[Snapshot]
)

private[interlock] object StartedTransaction {

  /** None if the function was not made by [[DeltaLog.startTransaction]] of Delta 4.4. */
  def of(create: () => OptimisticTransaction): Option[StartedTransaction] =
    Try(captured(create)).toOption.collect {
      case Seq(log: DeltaLog, table: Option[_], snapshot: Option[_]) => StartedTransaction(
          log,
          table.map(_.asInstanceOf[CatalogTable]),
          snapshot.map(_.asInstanceOf[Snapshot])
        )
    }

  private def captured(function: () => Any): Seq[Any] = {
    val values = function.getClass.getDeclaredFields.toSeq.map { field =>
      field.setAccessible(true)
      field.get(function)
    }
    values match {
      case Seq(inner: Function0[_]) => captured(inner) // the compiler may have wrapped it
      case _ => values
    }
  }
}
