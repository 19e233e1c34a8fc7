package io.interlock.coordinator

import scala.concurrent.duration._

/** Two processes with eight writers each, in whatever order they come: each commit was judged against
  * the one before it, and neither process is left behind.
  */
class JudgedSuite extends Tables {
  override val munitTimeout: Duration = 5.minutes

  /** `INTERLOCK_SOAK` set: the long form. */
  private val Commits = if (sys.env.contains("INTERLOCK_SOAK")) 3000L else 300L

  table.test(s"$Commits commits of two processes are judged against what is there") { table =>
    val results = FileSystemProcess.run(
      table.root,
      processes = 2,
      writers = 8,
      judging = 1.milli,
      JudgingProcess.Versions(Commits)
    )
    val published = table.names.count(_.endsWith(".json"))
    assert(published >= Commits)
    assertEquals(results.map(_.commits).sum, published)
    assertEquals(JudgingWriters.misjudged(table.log), Nil)
    assert(results.map(_.commits).min >= published / 8, s"one is left behind: $results")
  }
}
