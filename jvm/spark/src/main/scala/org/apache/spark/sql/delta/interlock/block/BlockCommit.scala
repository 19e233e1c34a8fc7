package org.apache.spark.sql.delta.interlock.block

import scala.collection.mutable

import io.interlock.spark.errors.CommitStateUnknownException
import org.apache.spark.sql.delta.interlock.commit.{CommitLoop, JointCommit, Made}

/** The commit of a block to all its tables. Delta prepares the commit of one table after the other;
  * each then waits, within its `commitImpl`, until the last one is ready and [[JointCommit]] has made
  * all of them.
  *
  * @param readOnly
  *   tables that the block has not changed, whose reads are judged too
  */
final private[block] class BlockCommit(
    changes: Seq[BlockTransaction],
    readOnly: Seq[BlockTransaction]
) extends WholeCommit {
  private var left = (readOnly ++ changes).toList
  private var commits = Vector.empty[(CommitLoop, BlockTransaction)]
  private var reads = Vector.empty[(CommitLoop, BlockTransaction)]
  private var made = Option.empty[Map[CommitLoop, Made]]
  private val versions = mutable.Map.empty[BlockTransaction, Long]

  override def tables: String = changes.map(_.of.name).mkString(", ")

  /** The table whose commit has lost or failed. */
  private var failed = Option.empty[BlockTransaction]

  /** @return
    *   the tables that have a new version
    * @throws org.apache.spark.sql.delta.DeltaConcurrentModificationException
    *   if the block loses in one of the tables
    */
  def run(): Seq[(BlockTable, Long)] = {
    left match {
      case List(only) => only.run().foreach(versions(only) = _)
      case _ =>
        try goOn()
        catch {
          case e: Throwable =>
            val mayBeMade = e.isInstanceOf[CommitStateUnknownException] ||
              changes.exists(_.statement.isMade)
            if (!mayBeMade) changes.foreach(_.rollBack())
            throw e
        }
    }
    for (change <- changes; version <- versions.get(change)) yield change.of -> version
  }

  private def goOn(): Unit = left match {
    case next :: rest =>
      left = rest
      next.run(this).foreach(versions(next) = _)
      if (made.isEmpty) goOn()
    case Nil => made = Some(commitAll())
  }

  private def commitAll(): Map[CommitLoop, Made] = {
    lazy val all = new JointCommit(commits.map(_._1), reads.map(_._1))
    try
      if (commits.nonEmpty) all.run()
      else {
        reads.foreach { case (loop, table) =>
          failed = Some(table)
          loop.check()
        }
        Map.empty
      }
    catch {
      case e: Throwable =>
        failed = failed.orElse(all.failed.flatMap((commits ++ reads).toMap.get))
        throw failed.filter(reads.map(_._2).contains).fold(e)(_.judged(e))
    }
  }

  override def make(table: BlockTransaction, loop: CommitLoop): Made = {
    commits :+= loop -> table
    goOn()
    made.get(loop)
  }

  override def judge(table: BlockTransaction, loop: CommitLoop): Unit = reads :+= loop -> table

  override def isOf(table: BlockTransaction): Boolean = {
    failed = failed.orElse(Some(table))
    failed.contains(table)
  }
}
