package io.interlock.spark.statements

import java.util.concurrent.ThreadLocalRandom

import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

import io.interlock.rules.{Conflict, ConflictKind}
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.errors.{Conflicts, InterlockConflict, MadeMeanwhile}
import io.interlock.spark.properties.{SessionPolicies, Setting}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{
  LogicalPlan,
  ReplaceTableAsSelect,
  V2CreateTableAsSelectPlan
}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.write.V1Write
import org.apache.spark.sql.delta.DeltaConcurrentModificationException
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.command.{LeafRunnableCommand, RunnableCommand}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.sources.InsertableRelation
import org.apache.spark.sql.{DataFrame, Row, SparkSession}

/** Runs a statement again if it lost a conflict, as often as its table or session permits.
  * Every run reads the table as it is then, and from the second run on the statement holds a claim.
  * What Delta's checks reject (a changed schema unless the statement replaces the table, a second
  * streaming query), what may have been committed, and a statement that was planned for another
  * schema is not run again.
  */
private[statements] object Rerun extends Logging {
  private val LongestPauseMillis = 10000L
  private val FirstPauseMillis = 50L

  /** @param runs
    *   asked when a run has lost
    * @param run
    *   runs the statement, given the number of the run from 1
    */
  def apply[A](runs: => Runs)(run: Int => A): A = ClaimingStatement.run { statement =>
    @tailrec def from(number: Int, lost: Vector[Conflict]): A = Try(run(number)) match {
      case Success(done) => done
      case Failure(failed: InterlockConflict) if runs.heal(failed.conflict.kind) =>
        val isFrozen = lost.lastOption.exists(earlier =>
          earlier.table == failed.conflict.table &&
            earlier.readVersion == failed.conflict.readVersion
        )
        if (number == runs.most || isFrozen) throw told(failed.conflict, lost)
        Thread.sleep(pause(number))
        statement.claim()
        if (!runs.areAsPlanned()) throw told(failed.conflict, lost)
        logWarning(
          s"${failed.conflict.operation} on ${failed.conflict.table} lost against " +
            s"${failed.conflict.lostTo} and runs again (run ${number + 1} of at most " +
            s"${runs.most})."
        )
        from(number + 1, lost :+ failed.conflict)
      // Delta's own check of what a statement replaces anyway, or of a table that was not there.
      case Failure(changed @ (_: DeltaConcurrentModificationException | MadeMeanwhile()))
          if runs.replaceTable && number < runs.most && runs.areAsPlanned() =>
        Thread.sleep(pause(number))
        statement.claim()
        logWarning(s"A statement that replaces its table runs again: ${changed.getMessage}")
        from(number + 1, lost)
      case Failure(other) => throw other
    }
    from(1, Vector.empty)
  }

  /** The last conflict, with those of the earlier runs. */
  private def told(last: Conflict, earlier: Seq[Conflict]): Throwable = {
    val runs = earlier.map(_.lostTo).mkString(", ")
    val why =
      if (earlier.isEmpty) last.why
      else s"${last.why}; this was run ${earlier.size + 1}, those before it lost against $runs"
    Conflicts.raised(last.copy(why = why), SessionPolicies.readable)
  }

  private def pause(number: Int): Long = {
    val longest = math.min(LongestPauseMillis, FirstPauseMillis << math.min(number, 16))
    ThreadLocalRandom.current().nextLong(longest / 2, longest + 1)
  }
}

/** How often a statement is run.
  *
  * @param areAsPlanned
  *   whether the table still has the schema that the statement was planned for: an UPDATE or a
  *   DELETE would write its rows without a column that has been added since
  * @param replaceTable
  *   whether it replaces the whole table and its schema, so that no other change matters
  */
final private[statements] case class Runs(
    most: Int,
    areAsPlanned: () => Boolean,
    replaceTable: Boolean = false
) {
  def heal(conflict: ConflictKind): Boolean = conflict match {
    case _: ConflictKind.OfData => true
    case _ => replaceTable
  }

  override def toString: String = most.toString
}

private[statements] object Runs {

  /** How often a session may run what changes a table with these properties. */
  def most(session: SparkSession, properties: Map[String, String]): Int =
    if (isNumbered(session)) 1
    else Setting.MaxRuns.in(properties, session.conf.getOption(_)).getOrElse(1)

  /** Whether Delta takes the session's `txnVersion` back when it has used it once. */
  private def isNumbered(session: SparkSession) = castToImpl(session).sessionState.conf
    .getConf(DeltaSQLConf.DELTA_IDEMPOTENT_DML_AUTO_RESET_ENABLED)

  /** Whether a part of a statement does the same on the same data. */
  def isDeterministic(part: Any): Boolean = part match {
    case plan: LogicalPlan => plan.deterministic && plan.subqueriesAll.forall(_.deterministic)
    case expression: Expression => expression.deterministic
    case several: Iterable[_] => several.forall(isDeterministic)
    case _ => true
  }
}

/** A command that is run again if it loses, and whose failure is one of its session's block. */
final private[statements] case class RerunCommand(command: RunnableCommand, runs: Runs)
    extends LeafRunnableCommand {
  override def output: Seq[Attribute] = command.output
  override lazy val metrics: Map[String, SQLMetric] = command.metrics
  override def innerChildren: Seq[QueryPlan[_]] = Seq(command)

  override def run(spark: SparkSession): Seq[Row] = Block.inBlock(spark) {
    Rerun(runs)(number => (if (number == 1) command else fresh).run(spark))
  }

  /** A command without what the last run has left in it. */
  private def fresh: RunnableCommand =
    command.makeCopy(command.productIterator.map(_.asInstanceOf[AnyRef]).toArray)
      .asInstanceOf[RunnableCommand]
}

/** A statement that makes or replaces its table by a query, and is run again if it loses.
  *
  * @param plan
  *   the statement, for which [[RerunStrategy]] does nothing any more
  */
final private[statements] case class RerunReplace(plan: V2CreateTableAsSelectPlan, runs: Runs)
    extends LeafRunnableCommand {
  override def innerChildren: Seq[QueryPlan[_]] = Seq(plan)

  override def run(spark: SparkSession): Seq[Row] = Rerun(runs) { _ =>
    try castToImpl(spark).sessionState.planner.plan(plan).next().executeCollect(): Unit
    catch {
      // Its version is made, and another job had given the table its entry in the catalog meanwhile.
      case _: TableAlreadyExistsException if replaces =>
    }
    Nil
  }

  private def replaces = plan match {
    case replace: ReplaceTableAsSelect => replace.orCreate
    case _ => false
  }
}

/** A write by INSERT or a DataFrame that is run again if it loses, and whose failure is one of its
  * session's block.
  */
final private[statements] class RerunWrite(write: V1Write, runs: Runs) extends V1Write {
  override def toInsertableRelation: InsertableRelation = {
    val relation = write.toInsertableRelation
    (data: DataFrame, overwrite: Boolean) =>
      Block.inBlock(data.sparkSession)(Rerun(runs)(_ => relation.insert(data, overwrite)))
  }
  override def description: String = write.description
}
