package io.interlock.coordinator

import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.duration._

/** Two processes with eight writers each, in whatever order they come: each commit was judged against
  * the one before it.
  */
class JudgedSuite extends Tables {
  override val munitTimeout: Duration = 5.minutes

  /** `INTERLOCK_SOAK` set: the long form. */
  private val Commits = if (sys.env.contains("INTERLOCK_SOAK")) 3000 else 300
  private val Writers = 8

  table.test(s"$Commits commits of two processes are judged against what is there") { table =>
    val left = new AtomicInteger(Commits)
    val processes = Seq.fill(2)(new JudgingWriters(table.log, table.newStore, 100000))
    val failures = new java.util.concurrent.ConcurrentLinkedQueue[Throwable]
    val threads = processes.flatMap(process =>
      Seq.fill(Writers)(new Thread(() =>
        try process.run(() => left.getAndDecrement() > 0)
        catch { case e: Throwable => failures.add(e): Unit }
      ))
    )
    threads.foreach(_.start())
    threads.foreach(_.join())
    Option(failures.peek()).foreach(throw _)
    assertEquals(processes.map(_.committed.get).sum, Commits)
    assertEquals(table.names.size, Commits)
    assertEquals(JudgingWriters.misjudged(table.log), Nil)
  }
}
