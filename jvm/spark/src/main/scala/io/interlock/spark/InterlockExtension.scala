package io.interlock.spark

import io.interlock.coordinator.CommitQueue
import io.interlock.spark.history.LatestFunctions
import io.interlock.spark.procedures.LogFunctions
import io.interlock.spark.properties.{
  DeltaOnly,
  Handshake,
  KernelWrites,
  Misspelt,
  RequiredStatistics,
  Setting,
  WriterOptions
}
import io.interlock.spark.ranges.{ReaderOptions, TableFunctions}
import io.interlock.spark.statements.{
  InterlockParser,
  JoinsInTransaction,
  MarkTruncate,
  PolicyInAlter,
  ReadsInTransaction,
  RerunStrategy,
  ResolveCompact,
  ResolveShowHistory,
  ResolveTableRange,
  ResolveTruncate,
  RunAtomicScript,
  StatementsInBlock,
  VacuumRetention
}
import org.apache.spark.SparkEnv
import org.apache.spark.interlock.metrics.InterlockMetrics
import org.apache.spark.interlock.ui.InterlockTab
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.delta.interlock.block.{
  ReadsInBlock,
  TransactionHook,
  WholeBlocksInQueries
}
import org.apache.spark.sql.delta.interlock.log.SessionEnd
import org.apache.spark.sql.delta.interlock.statement.{MarkedRows, PlanReads}
import org.apache.spark.sql.delta.interlock.table.ExclusiveFeature

/** The session extension for `spark.sql.extensions`, listed after Delta's.
  *
  * Refuses a session in which versions do not fit together (see [[Handshake]]).
  */
final class InterlockExtension extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    Handshake.check()
    DeltaHook.install()
    SessionEnd.install()
    InterlockExtension.limitMemory()
    InterlockMetrics.register()
    InterlockTab.attach()
    Misspelt.warnOfStart()
    extensions.injectParser(new InterlockParser(_, _))
    extensions.injectHintResolutionRule(session => new StatementsInBlock(session))
    extensions.injectHintResolutionRule(_ => MarkTruncate)
    extensions.injectHintResolutionRule(session => new ReaderOptions(session))
    extensions.injectResolutionRule(_ => ResolveTruncate)
    extensions.injectResolutionRule(_ => ResolveCompact)
    extensions.injectResolutionRule(session => new ResolveTableRange(session))
    extensions.injectResolutionRule(_ => ResolveShowHistory)
    extensions.injectResolutionRule(session => new RunAtomicScript(session))
    extensions.injectOptimizerRule(_ => ReadsInTransaction)
    extensions.injectOptimizerRule(session => new ReadsInBlock(session))
    extensions.injectOptimizerRule(session => new WholeBlocksInQueries(session))
    extensions.injectPreCBORule(session => new JoinsInTransaction(session))
    extensions.injectPlannerStrategy(session => new RerunStrategy(session))
    extensions.injectPostHocResolutionRule(_ => MarkedRows)
    extensions.injectPostHocResolutionRule(session => new ReadsInBlock(session))
    extensions.injectPostHocResolutionRule(_ => VacuumRetention)
    extensions.injectPostHocResolutionRule(_ => PolicyInAlter)
    extensions.injectCheckRule(_ => PlanReads.remember)
    extensions.injectCheckRule(session => new StatementsInBlock(session).check)
    extensions.injectCheckRule(_ => WriterOptions)
    extensions.injectCheckRule(_ => DeltaOnly)
    extensions.injectCheckRule(_ => KernelWrites)
    extensions.injectCheckRule(_ => Misspelt)
    extensions.injectCheckRule(_ => RequiredStatistics)
    LatestFunctions.register(extensions)
    TableFunctions.register(extensions)
    LogFunctions.register(extensions)
  }
}

object InterlockExtension {

  /** Applies the memory for commits with which Spark was started.
    *
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def limitMemory(): Unit = CommitQueue.keepAtMost(
    Setting.CommitMemory.in(key => Option(SparkEnv.get).flatMap(_.conf.getOption(key)))
  )
}

/** Keeps Delta's classes out of [[InterlockExtension]], which must load even if Delta is missing.
  */
private object DeltaHook {
  def install(): Unit = {
    ExclusiveFeature.install()
    TransactionHook.install()
  }
}
