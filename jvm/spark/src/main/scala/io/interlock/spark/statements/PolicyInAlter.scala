package io.interlock.spark.statements

import scala.jdk.CollectionConverters._

import io.interlock.spark.properties.{KernelTable, TableProperties}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SetTableProperties}
import org.apache.spark.sql.catalyst.rules.Rule

/** ALTER TABLE ... SET TBLPROPERTIES sets what a policy requires as well, whatever the table's
  * catalog.
  */
object PolicyInAlter extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case alter @ SetTableProperties(ResolvedTable(_, name, table, _), set)
        if KernelTable.isDelta(table) && set.keys.exists(TableProperties.isOurs) =>
      val has = table.properties().asScala.toMap
      alter.copy(properties = set ++ TableProperties.besideAlter(name.toString, has, set))
    case other => other
  }
}
