package org.apache.spark.sql.delta.interlock.block

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import io.interlock.coordinator.Causes
import io.interlock.spark.claims.StreamThread
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.TablePolicy
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.interlock.log.ChecksummedSnapshot
import org.apache.spark.sql.delta.interlock.statement.RunningTransactions
import org.apache.spark.sql.delta.{DeltaLog, OptimisticTransaction, Snapshot}

/** An atomic block of a session: statements that see each other's changes, which nobody else does, and
  * that become one version of each table that they change, or none of any.
  *
  * Each table is read at one version throughout: the newest one when the block first names it that
  * has no other block which tables named before do not have yet.
  */
final class Block private (session: SparkSession, private val isOfScript: Boolean) {
  val id: String = UUID.randomUUID.toString
  private var tables = Map.empty[Path, BlockTable]

  /** The number of its statements that have changed tables. */
  private val statements = new AtomicInteger

  /** The commits of the tables that it changes. */
  private var changes = Vector.empty[BlockTransaction]

  /** Whether a second run of its statements on the same data would do the same. */
  @volatile var isRepeatable = true

  /** What its first statement that failed has raised. In a script a handler may catch it. */
  @volatile private var failure = Option.empty[Throwable]

  /** Runs a statement, or a part of it: if that fails, the block can only be rolled back. */
  private def run[A](work: => A): A =
    try work
    catch {
      case failed: Throwable =>
        if (!isOfScript) failure = failure.orElse(Some(failed))
        throw failed
    }

  /** @throws InterlockException
    *   INTERLOCK_BLOCK_FAILED, if a statement has failed
    */
  def refuseIfFailed(): Unit = failure.foreach { first =>
    def line(error: Throwable) =
      Option(error.getMessage).flatMap(_.linesIterator.find(!_.isBlank)).getOrElse(s"$error")
    val why = Seq(first, Causes.of(first).last).map(line).distinct.mkString("; ")
    throw InterlockException("INTERLOCK_BLOCK_FAILED", "why" -> why)
  }

  /** The properties of the tables that it changes. */
  def changed: Seq[Map[String, String]] = synchronized(changes)
    .map(_.of.base.metadata.configuration)

  /** The transaction of one of the block's statements.
    *
    * @param begun
    *   the transaction that Delta would run it with
    * @throws InterlockException
    *   INTERLOCK_NOT_IN_BLOCK, if the block cannot change the table
    */
  private[block] def transaction(begun: OptimisticTransaction): OptimisticTransaction = {
    val table = this.table(begun.deltaLog, begun.catalogTable, begun.snapshot)
    if (TablePolicy.named(table.base.metadata.configuration).isEmpty)
      throw InBlock.refusedWithoutPolicy(table.name)
    synchronized {
      if (!changes.exists(_.of eq table)) {
        changes.headOption.foreach(first => refuseUnlessTogether(first.of, table))
        val commit = new BlockTransaction(table, id)
        RunningTransactions.start(commit)
        changes :+= commit
      }
    }
    new StagingTransaction(table, table.state)
  }

  private def refuseUnlessTogether(first: BlockTable, second: BlockTable): Unit = {
    if (!first.commitsWith(second)) throw InBlock.refusedApart(second.name, first.name)
    Seq(first, second).find(!_.isExclusive).foreach(open => throw InBlock.refusedOpen(open.name))
  }

  /** The files of a table as the block sees it. */
  private[block] def index(files: TahoeLogFileIndex): TahoeLogFileIndex =
    table(
      files.deltaLog,
      files.catalogTableOpt,
      WholeBlocks.newest(files.deltaLog, files.catalogTableOpt)
    ).index(files)

  private def table(
      log: DeltaLog,
      catalogTable: Option[CatalogTable],
      newest: => Snapshot
  ): BlockTable = synchronized {
    tables.getOrElse(
      log.logPath, {
        val others = tables.values.map(other => WholeBlocks.Read(other.base, other.catalogTable))
        val read = WholeBlocks.beside(
          others.toSeq,
          WholeBlocks.Read(WholeBlocks.settled(newest, catalogTable), catalogTable)
        ).getOrElse(throw InBlock.refusedAmidBlocks(log.dataPath.toString)).snapshot
        tables.values.find(_.isIn(log, read)).foreach(known =>
          throw InBlock.refusedTwice(known.name)
        )
        val isOurs = TablePolicy.coordinatorOf(read.metadata.configuration).nonEmpty
        val made =
          new BlockTable(
            log,
            catalogTable,
            if (isOurs) ChecksummedSnapshot.of(read) else read,
            statements,
            isOwn = () => isOf(SparkSession.active)
          )
        tables += log.logPath -> made
        made
      }
    )
  }

  /** Whether a session is the block's, or Spark's copy of it that computes cached rows. The copy for a
    * stream that was started in the block is not.
    */
  private def isOf(active: SparkSession) = active.conf.getOption(Block.OfSession).contains(id) &&
    (active.sessionUUID == session.sessionUUID || !StreamThread.isCurrent(active.sparkContext))

  /** Commits the block, which is over then.
    *
    * @return
    *   the tables that it has changed, and their versions
    * @throws org.apache.spark.sql.delta.DeltaConcurrentModificationException
    *   if it loses; nothing of the block is kept
    */
  private def commit(): Seq[(String, Long)] = {
    close()
    val versions = new BlockCommit(changes, readOnly).run()
    versions.map { case (table, version) =>
      val relation = DeltaTableV2(session, table.log.dataPath, table.catalogTable).toLogicalRelation
      session.sharedState.cacheManager.recacheByPlan(session, relation)
      table.name -> version
    }
  }

  /** The tables that it has only read, if their policies are serializable and the reads can be judged
    * at the moment of its commit.
    */
  private def readOnly: Seq[BlockTransaction] = for {
    first <- changes.headOption.map(_.of).toSeq
    if changes.forall(_.of.isExclusive)
    table <- tables.values.toSeq
    if table.state.statements.isEmpty && table.readByPlans.nonEmpty
    if table.isSerializable && table.commitsWith(first)
  } yield new BlockTransaction(table, id)

  private def rollBack(): Unit = {
    close()
    changes.foreach(_.rollBack())
  }

  private def close(): Unit = synchronized(tables.values.foreach(_.close()))
}

object Block {

  /** Where the settings of a session have the id of its block, so that Spark's copy of the session that
    * computes cached rows has it too.
    */
  private val OfSession = "spark.interlock.block.id"

  /** The open blocks, by the id of their session. */
  private val open = new ConcurrentHashMap[String, Block]

  /** The open block of a session. */
  def of(session: org.apache.spark.sql.SparkSession): Option[Block] = session match {
    case classic: SparkSession if !open.isEmpty => Option(open.get(classic.sessionUUID))
    case _ => None
  }

  /** Runs a statement of a session, or a part of it. If it fails, the session's block can only be
    * rolled back.
    */
  def inBlock[A](session: org.apache.spark.sql.SparkSession)(work: => A): A =
    of(session).fold(work)(_.run(work))

  /** Opens a block.
    *
    * @param isOfScript
    *   whether a script ends it, and no statement can
    * @return
    *   its id
    * @throws InterlockException
    *   INTERLOCK_BLOCK_OPEN, if the session has one
    */
  def begin(session: SparkSession, isOfScript: Boolean): String = {
    val block = new Block(session, isOfScript)
    if (open.putIfAbsent(session.sessionUUID, block) != null)
      throw InterlockException("INTERLOCK_BLOCK_OPEN")
    session.conf.set(OfSession, block.id)
    block.id
  }

  /** Commits the session's block and ends it. See [[Block.commit]].
    *
    * @throws InterlockException
    *   INTERLOCK_NO_BLOCK, if there is none; INTERLOCK_NOT_IN_BLOCK in a script
    */
  def commit(session: SparkSession, isOfScript: Boolean): Seq[(String, Long)] =
    end(session, "COMMIT", isOfScript).getOrElse(throw InterlockException("INTERLOCK_NO_BLOCK"))
      .commit()

  /** Ends the session's block, if there is one, without a trace of it.
    *
    * @throws InterlockException
    *   INTERLOCK_NOT_IN_BLOCK in a script
    */
  def rollBack(session: SparkSession, isOfScript: Boolean): Unit =
    end(session, "ROLLBACK", isOfScript).foreach(_.rollBack())

  private def end(session: SparkSession, verb: String, isOfScript: Boolean): Option[Block] = {
    if (of(session).exists(_.isOfScript != isOfScript)) throw InBlock.refused(verb)
    session.conf.unset(OfSession)
    Option(open.remove(session.sessionUUID))
  }
}
