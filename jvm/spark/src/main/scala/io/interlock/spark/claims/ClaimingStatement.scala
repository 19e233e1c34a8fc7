package io.interlock.spark.claims

import java.io.IOException

import scala.concurrent.duration._

import org.apache.spark.internal.Logging

/** What a statement tries to commit, and so can claim. */
trait Claimable {

  /** @param most
    *   how long the claim lasts
    * @return
    *   the claim's id
    */
  def claim(most: FiniteDuration): String
  def release(id: String): Unit
}

/** A statement that runs again if it loses. From its second run on it holds a claim, so that it does
  * not lose again.
  */
final class ClaimingStatement extends Logging {
  private var started = System.nanoTime
  private var tried: Option[Claimable] = None
  private var held: Option[(Claimable, String)] = None

  /** To be called when a run comes to its commit. */
  def tries(commit: Claimable): Unit = tried = Some(commit)

  def holds(claim: Claim): Boolean = held.exists(_._2 == claim.id)

  /** Claims, before the next run, what the last one has tried to commit: for twice the time that it
    * took.
    */
  def claim(): Unit = {
    val most = ((System.nanoTime - started).nanos * 2).max(ClaimingStatement.Shortest)
    release()
    tried.foreach(commit =>
      try held = Some(commit -> commit.claim(most))
      catch {
        case failed: IOException => logWarning("A statement runs again without a claim.", failed)
      }
    )
    started = System.nanoTime
  }

  private def release(): Unit = {
    held.foreach { case (commit, id) =>
      try commit.release(id)
      catch { case failed: IOException => logWarning(s"The claim $id is left to end.", failed) }
    }
    held = None
  }
}

object ClaimingStatement {
  private val Shortest = 10.seconds
  private val running = new ThreadLocal[ClaimingStatement]

  /** The statement of this thread, if it may run again. */
  def current: Option[ClaimingStatement] = Option(running.get)

  def run[A](work: ClaimingStatement => A): A = {
    val statement = new ClaimingStatement
    running.set(statement)
    try work(statement)
    finally {
      running.remove()
      statement.release()
    }
  }
}
