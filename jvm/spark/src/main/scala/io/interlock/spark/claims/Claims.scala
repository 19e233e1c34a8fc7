package io.interlock.spark.claims

import java.io.IOException
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.control.NonFatal

import io.interlock.coordinator.{Causes, Leases, QuickLocalFileSystem, TableLog}
import io.interlock.rules.{ClaimScope, Policy}
import io.interlock.spark.errors.InterlockException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession

/** Who claims: a session, and its name for messages. */
final case class Claimant(session: String, name: String)

/** The claims on a table, as files beside its log (see [[Leases]]). Commits are correct without
  * them: if a claim cannot be read, or its owner was stopped, the others go on.
  *
  * @param tableId
  *   Delta's id of the table; a table that was made anew at its path has none of its claims
  * @param table
  *   its name, for messages
  */
final class Claims(log: TableLog, tableId: String, table: String) extends Logging {
  import Claims._

  private val leases = new Leases(log, Kind)

  /** On S3 a look is several requests, and matters the less the longer one has waited. */
  private val longestPause =
    if (QuickLocalFileSystem.isLocal(log.path)) ShortestPause else LongestPauseElsewhere

  /** The claims of this process. */
  def own: Seq[Claim] = read(leases.own)

  def all(): Seq[Claim] = read(leases.own ++ others)

  private def others =
    try leases.others()
    catch {
      case failed: IOException if !Causes.areInterrupt(failed) =>
        logWarning(s"The claims on $table cannot be read.", failed)
        Nil
    }

  /** Puts a claim, waits until earlier ones that conflict with it have ended, and grants it. A
    * statement waits for the claims of statements only: those of sessions last long, and its commit
    * waits for them if it must.
    *
    * @param isOfSession
    *   whether it protects all jobs of the session, and not a single statement
    * @param most
    *   when it ends by itself, from the time that it is granted
    * @param grant
    *   runs the granting
    * @param patience
    *   how long earlier claims are waited for
    * @throws InterlockException
    *   INTERLOCK_CLAIMED if it is not granted within that time
    */
  def take(
      by: Claimant,
      isOfSession: Boolean,
      scope: ClaimScope,
      policy: Policy,
      most: FiniteDuration,
      patience: Duration = Duration.Inf
  )(grant: (=> Unit) => Unit): Claim = {
    val asked = Claim(
      UUID.randomUUID.toString,
      tableId,
      System.currentTimeMillis(),
      by.name,
      Some(by.session).filter(_ => isOfSession),
      Some(scope),
      until = None
    )
    def conflicting(is: Claim => Boolean) = all().find(other =>
      other.id != asked.id && is(other) && !other.session.contains(by.session) &&
        (isOfSession || other.session.isEmpty) && other.scope.exists(scope.conflictsWith(policy, _))
    )
    @tailrec def granted(): Claim = {
      leases.put(asked.id, asked.toJson, LongestWait)
      await(conflicting(other => other.isGranted || other.precedes(asked)), patience)(other =>
        logInfo(s"A claim on $table waits for ${shown(other)}.")
      ).foreach(other =>
        throw InterlockException(
          "INTERLOCK_CLAIMED",
          "table" -> table,
          "owner" -> other.owner,
          "seconds" -> patience.toSeconds.toString
        )
      )
      val claim = asked.copy(until = Some(System.currentTimeMillis() + most.toMillis))
      grant(leases.put(claim.id, claim.toJson, most))
      // One that was asked for earlier may have been written only now.
      if (conflicting(_.precedes(asked)).isEmpty) claim else granted()
    }
    try granted()
    catch {
      case failed: Throwable =>
        try leases.remove(asked.id): Unit
        catch { case NonFatal(left) => failed.addSuppressed(left) }
        throw failed
    }
  }

  /** Puts a claim for one commit, by which all commits of other processes wait. Claims of jobs go
    * first.
    *
    * @param since
    *   when the commit began its first try
    * @param most
    *   when it ends by itself
    */
  def takeTurn(owner: String, since: Long, most: FiniteDuration): Claim = {
    val until = System.currentTimeMillis() + most.toMillis
    val id = UUID.randomUUID.toString
    val turn = Claim(id, tableId, since, owner, Some(Process), scope = None, Some(until))
    leases.put(id, turn.toJson, most)
    turn
  }

  /** Waits while there is a claim that holds somebody.
    *
    * @param told
    *   called for each such claim
    * @return
    *   the one that is still there when the patience ends
    */
  def await(holding: => Option[Claim], patience: Duration)(told: Claim => Unit): Option[Claim] = {
    val start = System.nanoTime
    def waited = (System.nanoTime - start).nanos
    @tailrec def from(before: Option[String]): Option[Claim] = holding match {
      case None => None
      case found if waited >= patience => found
      case Some(claim) =>
        if (!before.contains(claim.id)) told(claim)
        Thread.sleep((waited / 10).max(ShortestPause).min(longestPause).toMillis)
        from(Some(claim.id))
    }
    interruptibly(from(before = None))
  }

  private def read(notes: Seq[(String, String)]) =
    notes.flatMap { case (id, text) => Claim.of(id, text) }.filter(_.tableId == tableId).sortBy(
      claim => (claim.since, claim.id)
    )
}

object Claims {
  private val Kind = "claims"

  /** In place of a session, in the claims of single commits: they hold none of this process. */
  val Process: String = UUID.randomUUID.toString

  /** The id under which a session claims tables, once it has; its clones have it too. */
  val SessionConf = "interlock.claimant"

  /** Between two looks at what holds somebody. */
  private val ShortestPause = 100.millis
  private val LongestPauseElsewhere = 1.second
  private val LongestWait = 7.days

  /** How long a job that has a claim waits for another's: two jobs that wait for each other do not
    * wait forever.
    */
  private val Patience = 10.seconds

  /** How long somebody waits for claims.
    *
    * @param session
    *   the session that waits
    * @param ordered
    *   the log of a table on which its own claims do not count, because they are ordered with those
    *   that it waits for
    */
  def patience(session: String, ordered: Option[TableLog] = None): Duration = {
    val hasAnother = Leases.held(Kind).exists { case (log, _, text) =>
      !ordered.exists(_.path == log) && Claim.of("", text).exists(_.session.contains(session))
    }
    if (hasAnother) Patience else Duration.Inf
  }

  /** Ends a claim of this process.
    *
    * @return
    *   whether there was one
    */
  def release(id: String): Boolean = Leases.remove(Kind, id)

  private val waiting = ConcurrentHashMap.newKeySet[Thread]()

  private def interruptibly[A](wait: => A): A = {
    val session = SparkSession.getActiveSession
    if (!session.exists(active => StreamThread.isCurrent(active.sparkContext)))
      waiting.add(Thread.currentThread): Unit
    try wait
    finally waiting.remove(Thread.currentThread): Unit
  }

  /** Interrupts the statements that wait for claims, for Ctrl-C: they run no Spark job that
    * could be cancelled. Streaming queries go on.
    */
  def interruptWaiting(): Unit = waiting.forEach(_.interrupt())

  /** A claim as it is called in messages. */
  def shown(claim: Claim): String =
    if (claim.isTurn) s"a commit of ${claim.owner}, which others have overtaken"
    else s"the claim ${claim.id} of ${claim.owner}"
}
