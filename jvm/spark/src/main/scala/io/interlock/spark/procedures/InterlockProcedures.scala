package io.interlock.spark.procedures

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure
import org.apache.spark.sql.connector.catalog.{Identifier, ProcedureCatalog}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The catalog of Interlock's procedures: `spark.sql.catalog.interlock`. They are called as
  * `CALL interlock.history('db.t')`, listed by `SHOW PROCEDURES IN interlock` and described by
  * `DESCRIBE PROCEDURE interlock.history`. It has nothing else.
  */
final class InterlockProcedures extends ProcedureCatalog {
  import InterlockProcedures._

  private var catalogName = ""

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit =
    catalogName = name

  override def name(): String = catalogName

  override def defaultNamespace(): Array[String] = Array.empty

  /** For SHOW PROCEDURES, which Spark 4.0 does not have. */
  def listProcedures(namespace: Array[String]): Array[Identifier] =
    if (namespace.nonEmpty) Array.empty
    else All.map(procedure => Identifier.of(Array.empty, procedure.name)).toArray

  override def loadProcedure(identifier: Identifier): UnboundProcedure =
    All
      .find(found => identifier.namespace.isEmpty && found.name.equalsIgnoreCase(identifier.name))
      .getOrElse(throw InterlockException.unknownProcedure(identifier.toString, All.map(_.name)))
}

private object InterlockProcedures {
  val All: Seq[InterlockProcedure] = Seq(
    BlocksProcedure,
    ClaimProcedure,
    ClaimsProcedure,
    CompactProcedure,
    ConflictsProcedure,
    ExplainConflictProcedure,
    FilesProcedure,
    HistoryProcedure,
    PoliciesProcedure,
    ReleaseProcedure,
    RemovePolicyProcedure,
    SetPolicyProcedure,
    VersionsProcedure
  )
}
