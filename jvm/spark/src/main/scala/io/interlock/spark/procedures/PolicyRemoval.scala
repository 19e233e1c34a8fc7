package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.{TablePolicy, TableProperties}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{
  AlterTableDropFeatureDeltaCommand,
  AlterTableUnsetPropertiesDeltaCommand
}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** The way back from a policy to plain Delta: ends the policy and drops the table features that it
  * brought and that nothing else uses, so that writers which know neither may write the table.
  *
  * Each step leaves a valid table, and a call goes on where an earlier one ended. The first step is one
  * commit: it ends the policy and turns off what the policy required, so that whatever is on afterwards
  * is somebody else's. No feature is dropped that would cost the table its history.
  */
final private class PolicyRemoval(
    session: SparkSession,
    load: () => DeltaTableV2,
    snapshot: DeltaTableV2 => Snapshot,
    keep: Set[String]
) {
  import PolicyRemoval._

  def run(): Seq[Row] = endPolicy() ++ dropped.flatMap(dropUnlessUsed) ++ others(snapshot(load()))

  private def endPolicy(): Seq[Row] = {
    val table = load()
    val now = snapshot(table)
    val properties = now.metadata.configuration
    val ours = properties.toSeq.filter { case (key, _) => TableProperties.isOurs(key) }.sorted
    val required = for {
      (feature, switch) <- switches if TablePolicy.named(properties).nonEmpty
      if !keep(feature.name) && neededBy(feature, now).isEmpty
    } yield switch.key
    if (ours.nonEmpty)
      AlterTableUnsetPropertiesDeltaCommand(table, ours.map(_._1) ++ required, ifExists = true)
        .run(session)
    ours.map { case (key, value) => Row(key, "removed", value) }
  }

  private def dropUnlessUsed(feature: TableFeature): Option[Row] = {
    val table = load()
    val now = snapshot(table)
    Option.when(now.protocol.isFeatureSupported(feature)) {
      val why = whyKept(feature, table, now)
      if (why.isEmpty) {
        val truncates =
          feature == CheckpointProtectionTableFeature // Delta drops it in no other way
        AlterTableDropFeatureDeltaCommand(table, feature.name, truncates).run(session)
      }
      Row(feature.name, if (why.isEmpty) "dropped" else "kept", why.orNull)
    }
  }

  private def whyKept(feature: TableFeature, table: DeltaTableV2, now: Snapshot): Option[String] = {
    val users = neededBy(feature, now)
    if (keep(feature.name)) Some("asked for")
    else if (users.nonEmpty) Some(s"needed by ${users.mkString(", ")}")
    else whyInUse(feature, table, now)
  }

  private def whyInUse(feature: TableFeature, table: DeltaTableV2, now: Snapshot): Option[String] =
    feature match {
      case DomainMetadataTableFeature =>
        val domains = now.domainMetadata.map(_.domain).sorted
        Option.when(domains.nonEmpty)(s"has the domains ${domains.mkString(", ")}")
      case protection: CheckpointProtectionTableFeature.type =>
        val first = protection.getCheckpointProtectionVersion(now)
        Option.unless(
          protection.historyPriorToCheckpointProtectionVersionIsTruncated(now, table.catalogTable)
        )(s"protects the versions before $first: DROP FEATURE ... TRUNCATE HISTORY deletes both")
      case _ => switches.collectFirst {
          case (`feature`, switch) if switch.fromMetaData(now.metadata) =>
            s"${switch.key} is true, and no policy requires it"
        }
    }
}

object PolicyRemoval {
  val schema: StructType = new StructType()
    .add("what", StringType, nullable = false)
    .add("outcome", StringType, nullable = false)
    .add("why", StringType)

  /** What turns a feature on that every policy requires. */
  private val switches: Seq[(TableFeature, DeltaConfig[Boolean])] = Seq(
    RowTrackingFeature -> DeltaConfigs.ROW_TRACKING_ENABLED,
    InCommitTimestampTableFeature -> DeltaConfigs.IN_COMMIT_TIMESTAMPS_ENABLED
  )

  /** The features that a caller may keep. */
  val choices: Seq[String] = switches.map { case (feature, _) => feature.name }

  /** What is dropped where nothing uses it, each before those that it needs. */
  private val dropped = switches.map { case (feature, _) => feature } ++
    Seq(DomainMetadataTableFeature, CheckpointProtectionTableFeature)

  /** @return
    *   what was removed and dropped, and the features that the table still has
    */
  def run(session: SparkSession, name: String, statement: String, keep: Set[String]): Seq[Row] =
    new PolicyRemoval(
      session,
      () => NamedTable.load(session, name, statement),
      NamedTable.snapshot(session, _, statement),
      keep
    ).run()

  private def neededBy(feature: TableFeature, now: Snapshot): Seq[String] =
    TableFeature.getDependentFeatures(feature).filter(now.protocol.isFeatureSupported)
      .map(_.name).toSeq.sorted

  /** All but those that are dropped and those of old protocols. */
  private def others(now: Snapshot): Seq[Row] =
    now.protocol.implicitlyAndExplicitlySupportedFeatures.toSeq.sortBy(_.name)
      .filterNot(feature => feature.isLegacyFeature || dropped.contains(feature))
      .map { feature =>
        val why =
          if (feature == DeletionVectorsTableFeature) "files and older versions may have some"
          else "no policy brings it"
        Row(feature.name, "kept", why)
      }
}
