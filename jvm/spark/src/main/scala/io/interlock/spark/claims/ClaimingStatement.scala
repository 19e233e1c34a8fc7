package io.interlock.spark.claims

import java.io.IOException

import scala.concurrent.duration._

import io.interlock.spark.errors.InterlockException
import org.apache.spark.internal.Logging

/** What a statement tries to commit to a table, and so can claim. */
trait Claimable {

  /** The path of the table's log. */
  def path: String

  /** @param most
    *   how long the claim lasts
    * @return
    *   the claim's id
    */
  def claim(most: FiniteDuration): String
}

/** A statement that runs again if it loses. From its second run on it holds a claim, so that it does
  * not lose again.
  */
final class ClaimingStatement extends Logging {
  private var started = System.nanoTime
  private var tried = Map.empty[String, Claimable]
  private var held = Set.empty[String]

  /** To be called when a run comes to its commit. */
  def tries(commit: Claimable): Unit = tried += commit.path -> commit

  def holds(claim: Claim): Boolean = held(claim.id)

  /** Claims, before the next run, what the last one has tried to commit: until the statement ends,
    * at most for an hour or, if that is longer, for twice the time of the last run. A block claims
    * its tables in the order of their paths, so that no two wait for each other.
    */
  def claim(): Unit = {
    val most = ((System.nanoTime - started).nanos * 2).max(1.hour)
    release()
    tried.toSeq.sortBy(_._1).foreach { case (path, commit) =>
      try held += commit.claim(most)
      catch {
        case failed @ (_: IOException | _: InterlockException) =>
          logWarning(s"A statement runs again without a claim on $path.", failed)
      }
    }
    started = System.nanoTime
  }

  private def release(): Unit = {
    held.foreach { id =>
      try Claims.release(id): Unit
      catch { case failed: IOException => logWarning(s"The claim $id is left to end.", failed) }
    }
    held = Set.empty
  }
}

object ClaimingStatement {
  private val running = new ThreadLocal[ClaimingStatement]

  /** The statement of this thread, if it may run again. */
  def current: Option[ClaimingStatement] = Option(running.get)

  def run[A](work: ClaimingStatement => A): A = {
    val (outer, statement) = (running.get, new ClaimingStatement)
    running.set(statement)
    try work(statement)
    finally {
      running.set(outer)
      statement.release()
    }
  }
}
