package org.apache.spark.sql.delta.interlock.log

import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.{Semaphore, TimeUnit}

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.interlock.DeltaSuite
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.util.Clock

class BackgroundCheckpointsSuite extends DeltaSuite {

  /** Holds a thread that writes a checkpoint, or cleans up after it, where it asks for the time. */
  private class Gates extends Clock {
    val arrived = new Semaphore(0)
    val opened = new Semaphore(0)

    override def getTimeMillis(): Long = {
      if (Thread.currentThread.getName.startsWith("interlock-checkpoint")) {
        arrived.release()
        opened.acquire()
      }
      System.currentTimeMillis()
    }
    override def nanoTime(): Long = System.nanoTime()
    override def waitTillTime(targetTime: Long): Long = targetTime
  }

  private def madeTable(clock: Clock): Snapshot = {
    val folder = Files.createTempDirectory("checkpoints").resolve("table").toString
    spark.range(3).write.format("delta").save(folder)
    DeltaLog.clearCache()
    DeltaLog.forTable(spark, new Path(folder), clock).update()
  }

  private def logFolder(table: Snapshot) = LocalPath.of(table.deltaLog.logPath.toUri.getPath)

  private def isWritten(table: Snapshot) =
    Files.exists(logFolder(table).resolve("_last_checkpoint"))

  private def isSuspended(table: Snapshot) =
    BackgroundCheckpoints.suspended(table.deltaLog.logPath, 10)(true).contains(true)

  test("a checkpoint and the cleaning after it suspend nothing until they end") {
    val gates = new Gates
    val table = madeTable(gates)
    BackgroundCheckpoints.write(spark, table, None)
    val passed = mutable.Set.empty[Boolean]
    while (!BackgroundCheckpoints.awaitIdle(0))
      if (gates.arrived.tryAcquire(10, TimeUnit.MILLISECONDS)) {
        passed += isWritten(table)
        assert(!isSuspended(table))
        gates.opened.release()
      }
    assertEquals(passed.toSet, Set(false, true))
    assert(isSuspended(table))
  }

  test("a checkpoint that becomes due meanwhile is dropped, and the next one is written") {
    val table = madeTable(new Gates { opened.release(1000) })
    val log = table.deltaLog.logPath
    val done = BackgroundCheckpoints.suspended(log, 60000) {
      BackgroundCheckpoints.write(spark, table, None)
      assert(BackgroundCheckpoints.awaitIdle(0))
    }
    assert(done.nonEmpty)
    assert(BackgroundCheckpoints.awaitIdle(60000))
    assert(!isWritten(table))
    BackgroundCheckpoints.write(spark, table, None)
    assert(BackgroundCheckpoints.awaitIdle(60000))
    assert(isWritten(table))
  }

  test("work that fails does not suspend for good") {
    val log = madeTable(new Gates).deltaLog.logPath
    intercept[IllegalStateException] {
      BackgroundCheckpoints.suspended(log, 60000)(throw new IllegalStateException)
    }
    assertEquals(BackgroundCheckpoints.suspended(log, 0)(1), Some(1))
  }
}
