package io.interlock.spark.procedures

import org.apache.spark.sql.connector.catalog.procedures.SimpleProcedure

/** A procedure whose parameters do not depend on the types of the arguments. DESCRIBE PROCEDURE shows
  * the parameters of no other.
  */
private[procedures] trait ProcedureOfOneForm extends SimpleProcedure
