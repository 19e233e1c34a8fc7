package io.interlock.spark.properties

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Refuses writes to a table with a policy that Delta Kernel would commit, which nobody judges: in a
  * session with `spark.databricks.delta.v2.enableMode=STRICT` and a catalog that is not Interlock's.
  */
object KernelWrites extends (LogicalPlan => Unit) {
  override def apply(plan: LogicalPlan): Unit = plan.foreach {
    case write: V2WriteCommand =>
      write.table match {
        case target: DataSourceV2Relation => refuse(target.table)
        case _ =>
      }
    case stream: WriteToStream => refuse(stream.sink)
    case _ =>
  }

  private def refuse(target: Table): Unit = target match {
    case kernel: DeltaV2Table if KernelTable.isOrdered(kernel) =>
      throw InterlockException("INTERLOCK_WRITE_THROUGH_KERNEL", "table" -> kernel.name)
    case _ =>
  }
}
