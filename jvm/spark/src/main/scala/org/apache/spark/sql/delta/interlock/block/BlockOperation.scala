package org.apache.spark.sql.delta.interlock.block

import io.interlock.rules.OperationClass
import io.interlock.spark.commits.Operations
import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.interlock.judging.ClassifiedOperation

/** The operation of a block's commit with several statements that change its table.
  *
  * Appends together are an append. Other statements together are judged as a mutation that reads what
  * each of them has read, which for an overwrite is all that it replaces. For later commits such a
  * block counts as an overwrite if one of its statements is.
  */
final private[block] class BlockOperation(
    id: String,
    statements: Seq[Operation],
    classes: Set[OperationClass]
) extends DeltaOperations.OperationWithPredicates(BlockOperation.Name, Nil)
    with ClassifiedOperation {
  override def parameters: Map[String, Any] =
    Map("block" -> id, "statements" -> statements.map(Operations.name).mkString(", "))
  override val userMetadata: Option[String] = statements.flatMap(_.userMetadata).lastOption
  override val operationMetrics: Set[String] = Set.empty
  override def changesData: Boolean = true
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(false)
  override def canChangePartitionColumns: Boolean = false

  override def judgedAs: OperationClass =
    if (classes == Set(OperationClass.Append)) OperationClass.Append else OperationClass.Mutate

  override def winsAs: OperationClass =
    if (classes(OperationClass.Overwrite)) OperationClass.Overwrite else judgedAs
}

private[block] object BlockOperation {
  val Name = "ATOMIC BLOCK"
}
