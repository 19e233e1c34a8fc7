package org.apache.spark.sql.delta.interlock.table

import io.interlock.rules.Policy
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.properties._
import org.apache.spark.internal.Logging
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

/** The rules that a table's properties set for a transaction: the policy, and the properties that
  * the policy requires.
  */
final private[interlock] class PropertyRules(spark: SparkSession, table: ReadTable)
    extends Logging {

  /** The policy that the table had when the transaction began to read it.
    *
    * @throws InterlockException
    *   if this session does not have the policy, or has other rules under its name; if something
    *   else orders the table's commits
    */
  lazy val policy: Option[Policy] = {
    OtherCoordinator.refuse(table.name, table.properties, features)
    PolicyDigest.enforced(table.name, table.properties)
  }

  /** Refuses a session that cannot commit under the table's policy. */
  def refuseOthers(): Unit = {
    val _ = policy
  }

  /** Whether something else orders the table's commits, although a writer without Interlock has
    * given it a policy.
    */
  lazy val hasTwoCoordinators: Boolean =
    OtherCoordinator.besideOurs(table.properties, features).nonEmpty

  private def features = table.snapshot.protocol.readerAndWriterFeatureNames

  /** Refuses a commit that gives a table a second coordinator.
    *
    * @param protocol
    *   the table's protocol after the commit
    */
  def refuseTwoCoordinators(changed: Metadata, protocol: Protocol): Unit =
    if (!hasTwoCoordinators) OtherCoordinator
      .refuse(table.name, changed.configuration, protocol.readerAndWriterFeatureNames)

  def hadPolicy: Boolean = TablePolicy.named(table.properties).nonEmpty

  /** The policy that a commit is judged by: the one the transaction read, or the one it sets. */
  def policyOf(op: Operation, metadata: Metadata): Option[Policy] = op match {
    case _: SetTableProperties | _: UnsetTableProperties =>
      TablePolicy.policyOf(metadata.configuration)
    case _ => policy.orElse(TablePolicy.policyOf(metadata.configuration))
  }

  /** Whether the table has a coordinator before a commit or after it.
    *
    * @param metadata
    *   the table's metadata after the commit
    */
  def isCoordinated(metadata: Metadata): Boolean =
    Seq(table.properties, metadata.configuration)
      .exists(TablePolicy.coordinatorOf(_).nonEmpty)

  /** Whether the statement replaces this table by a new one. */
  private var replaced = false

  /** Tells that the statement sets the metadata of a new table. */
  def replaces(): Unit = replaced = !table.isNew

  /** Refuses a commit to the log of another table, if this one has a coordinator.
    *
    * @param metadata
    *   the table's metadata after the commit
    */
  def refuseIfGone(metadata: Metadata): Unit = if (isCoordinated(metadata)) table.refuseIfGone()

  /** The metadata that a statement sets, with the properties that its policy requires; warns of
    * suspicious settings.
    */
  def completed(proposed: Metadata): Metadata =
    if (hasTwoCoordinators && !replaced) proposed // of UNSET, or refused when it commits
    else withRequired(proposed)

  private def withRequired(proposed: Metadata): Metadata = {
    val before = TableProperties.Table(
      name = table.name,
      properties = table.properties,
      exists = !table.isNew,
      replaced = replaced,
      supports = features
    )
    val after = TableProperties.complete(before, proposed.configuration, defaults(proposed))
    // Before the statement writes files; RESTORE and ALTER TABLE do not. Delta adds its defaults and
    // the old table's coordinator later.
    if (table.isNew || replaced)
      OtherCoordinator.refuse(table.name, table.properties ++ after, features)
    TablePolicy.coordinatorOf(after)
      .filterNot(TablePolicy.coordinatorOf(before.properties).contains)
      .foreach(Coordinators.check(spark, table.log, table.name, _))
    IdentityColumns.warn(table.name, proposed.schema, before.properties, after)
    TableIsolation.warn(table.name, before.properties, after)
    Misspelt.warnOfProperties(after.keySet -- before.properties.keySet)
    Misspelt.warnOfSettings(spark.conf.getAll.keys)
    proposed.copy(configuration = after)
  }

  /** The session's settings for a new table, without a policy if something else orders its commits. */
  private def defaults(proposed: Metadata)(key: String): Option[String] = {
    val other =
      if (key != TableProperties.DefaultPolicyConf) None
      else OtherCoordinator.of(table.properties ++ proposed.configuration, features)
    spark.conf.getOption(key).filter { value =>
      other.foreach(orders =>
        logWarning(
          s"${table.name} gets no policy, as its commits are ordered by $orders: $key is $value"
        )
      )
      other.isEmpty
    }
  }

  /** The changed metadata with Interlock's properties, which only UNSET removes. */
  def kept(op: Operation, changed: Metadata): Metadata = {
    val properties = op match {
      case unset: UnsetTableProperties =>
        TableProperties.unset(changed.configuration, unset.propKeys)
      case _: Restore => TableProperties.restored(table.properties, changed.configuration)
      case _: Clone if Exclusive.of(table.properties) =>
        changed.configuration + (Exclusive.Key -> "true")
      case _ => changed.configuration
    }
    changed.copy(configuration = properties)
  }

  /** A protocol that a statement sets, with the features of the one that it set before. */
  def merged(protocol: Protocol, before: Option[Protocol], metadata: Metadata): Protocol =
    if (TablePolicy.named(metadata.configuration).isEmpty) protocol
    else before.fold(protocol)(protocol.merge(_))

  /** The protocol with the feature of exclusive tables, or without it. */
  def fenced(protocol: Protocol, metadata: Metadata): Protocol =
    ExclusiveFeature.of(protocol, Exclusive.of(metadata.configuration))

  /** @throws InterlockException
    *   if the policy does not permit the commit, or the commit removes what the policy requires
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

  /** Checks the actions of a commit. On a table whose DML writes no deletion vectors a rebase may
    * have written some; RESTORE and CLONE may add such files again.
    *
    * @param check
    *   Delta's check of each action
    * @param isReadable
    *   whether the table may have deletion vectors at all
    */
  def wellFormed(check: Action => Unit, op: Operation, metadata: Metadata)(
      isReadable: => Boolean
  ): Action => Unit = op match {
    case _: Restore | _: Clone
        if TablePolicy.named(metadata.configuration).nonEmpty && isReadable =>
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
