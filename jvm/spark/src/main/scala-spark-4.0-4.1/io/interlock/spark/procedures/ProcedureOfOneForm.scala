package io.interlock.spark.procedures

import org.apache.spark.sql.connector.catalog.procedures.{BoundProcedure, UnboundProcedure}
import org.apache.spark.sql.types.StructType

/** A procedure whose parameters do not depend on the types of the arguments. */
private[procedures] trait ProcedureOfOneForm extends UnboundProcedure with BoundProcedure {
  final override def bind(inputType: StructType): BoundProcedure = this
}
