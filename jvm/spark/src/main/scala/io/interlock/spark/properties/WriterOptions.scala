package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.plans.logical.{
  CreateTableAsSelect,
  LogicalPlan,
  ReplaceTableAsSelect
}
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand

/** Refuses `interlock.*` properties given as options of a DataFrame writer, which never become
  * properties of a table.
  */
object WriterOptions extends (LogicalPlan => Unit) {

  /** Checks the plans of `df.write.save(path)` and `saveAsTable`; the catalog checks the rest. */
  override def apply(plan: LogicalPlan): Unit = plan match {
    case save: SaveIntoDataSourceCommand => refuse(save.options.keys)
    case create: CreateTableAsSelect => refuse(create.writeOptions.keys)
    case replace: ReplaceTableAsSelect => refuse(replace.writeOptions.keys)
    case _ =>
  }

  def refuse(options: Iterable[String]): Unit =
    options.find(TableProperties.isOurs).foreach { key =>
      throw InterlockException("INTERLOCK_PROPERTY_AS_OPTION", "property" -> key)
    }
}
