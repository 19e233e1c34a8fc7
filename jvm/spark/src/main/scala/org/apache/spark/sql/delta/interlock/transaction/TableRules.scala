package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.Policy
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.properties._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaOperations.{
  Clone,
  DropTableFeature,
  Operation,
  Restore,
  SetTableProperties,
  UnsetTableProperties
}
import org.apache.spark.sql.delta.actions.{Action, AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.{IsolationLevel, SnapshotIsolation}

/** What the properties of a table ask of a transaction: its policy, and what a policy needs. */
final private[transaction] class TableRules(spark: SparkSession, table: ReadTable) {

  /** The policy that the table had when the transaction began to read it.
    *
    * @throws InterlockException
    *   where this writer lacks it, or means other rules by its name
    */
  lazy val policy: Option[Policy] = PolicyDigest.enforced(table.name, table.properties)

  /** Refuses a writer that lacks the policy or means other rules by its name. */
  def refuseOthers(): Unit = {
    val _ = policy
  }

  def hadPolicy: Boolean = TableProperties.named(table.properties).nonEmpty

  /** The policy that a commit is judged by: the one the transaction read, or the one it sets. */
  def policyOf(op: Operation, metadata: Metadata): Option[Policy] = op match {
    case _: SetTableProperties | _: UnsetTableProperties =>
      TableProperties.policyOf(metadata.configuration)
    case _ => policy.orElse(TableProperties.policyOf(metadata.configuration))
  }

  /** Whether the table has a coordinator before a commit or after it.
    *
    * @param metadata
    *   the table's after it
    */
  def isCoordinated(metadata: Metadata): Boolean =
    Seq(table.properties, metadata.configuration)
      .exists(TableProperties.coordinatorOf(_).nonEmpty)

  /** The metadata that a statement sets, with what a policy in it requires; warns of what is odd.
    *
    * @param replaced
    *   whether the statement puts a new table in the place of this one
    */
  def completed(proposed: Metadata, replaced: Boolean): Metadata = {
    val before = TableProperties.Table(
      name = table.name,
      properties = table.properties,
      exists = !table.isNew,
      replaced = replaced,
      supports = table.snapshot.protocol.readerAndWriterFeatureNames
    )
    val default = spark.conf.getOption(TableProperties.DefaultPolicyConf)
    val after = TableProperties.complete(before, proposed.configuration, default)
    TableProperties.coordinatorOf(after)
      .filterNot(TableProperties.coordinatorOf(before.properties).contains)
      .foreach(Coordinators.check(spark, table.log, _))
    IdentityColumns.warn(table.name, proposed.schema, before.properties, after)
    TableIsolation.warn(table.name, before.properties, after)
    Misspelt.warnOfProperties(after.keySet -- before.properties.keySet)
    Misspelt.warnOfSettings(spark.conf.getAll.keys)
    proposed.copy(configuration = after)
  }

  /** Interlock's properties survive every change of the metadata; only UNSET ends them. */
  def kept(op: Operation, changed: Metadata): Metadata = {
    val properties = op match {
      case unset: UnsetTableProperties =>
        TableProperties.unset(changed.configuration, unset.propKeys)
      case _: Restore => TableProperties.restored(table.properties, changed.configuration)
      case _ => changed.configuration
    }
    changed.copy(configuration = properties)
  }

  /** A protocol that a statement sets, with the features of the one that it set before. */
  def merged(protocol: Protocol, before: Option[Protocol], metadata: Metadata): Protocol =
    if (TableProperties.named(metadata.configuration).isEmpty) protocol
    else before.fold(protocol)(protocol.merge(_))

  /** @throws InterlockException
    *   where the policy does not permit the commit, or the commit takes from it what it needs
    */
  def refuse(commit: GovernedCommit, actions: Seq[Action]): Unit = {
    commit.refuseUnlessPermitted(table.name)
    val dropped = Option(commit.operation).collect { case drop: DropTableFeature =>
      drop.featureName
    }
    TableProperties.refuseDrop(commit.policy, dropped.toSeq)
    actions.foreach {
      case set: Metadata => TableProperties.refuseIncomplete(set.configuration)
      case _ => ()
    }
  }

  /** A rebase may have marked rows dead on a table that makes no vectors by itself: RESTORE and CLONE
    * bring such files back as they are.
    *
    * @param check
    *   Delta's, of each action of a commit
    * @param isReadable
    *   whether the table may have deletion vectors at all
    */
  def wellFormed(check: Action => Unit, op: Operation, metadata: Metadata)(
      isReadable: => Boolean
  ): Action => Unit = op match {
    case _: Restore | _: Clone
        if TableProperties.named(metadata.configuration).nonEmpty && isReadable =>
      action => if (!action.isInstanceOf[AddFile]) check(action)
    case _ => check
  }

  /** @param stock
    *   the level by which Delta would judge the commit
    */
  def isolation(
      stock: IsolationLevel,
      commit: Option[GovernedCommit],
      metadata: Metadata
  ): IsolationLevel = commit.filter(_ => stock != SnapshotIsolation)
    .fold(stock)(current => TableIsolation.of(current.policy, metadata.configuration))
}
