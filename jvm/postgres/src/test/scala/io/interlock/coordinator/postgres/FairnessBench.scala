package io.interlock.coordinator.postgres

import java.nio.file.Files

import scala.concurrent.duration._

import io.interlock.coordinator.{CommitStore, JudgingProcess, JudgingWriters, TestTable}

/** What each of several processes gets of one table's commits, and the longest wait of any.
  *
  * Arguments: how many processes, writers of each, microseconds to judge one commit, seconds; then, for
  * Postgres, its settings as `key=value`.
  */
object FairnessBench {
  def main(arguments: Array[String]): Unit = {
    val numbers = arguments.take(4).map(_.toInt)
    val (processes, writers, micros, seconds) = (numbers(0), numbers(1), numbers(2), numbers(3))
    val root = Files.createTempDirectory("interlock-fairness")
    val results = StoreProcess.run(
      root,
      processes,
      writers,
      micros.micros,
      JudgingProcess.For(seconds.seconds),
      arguments.drop(4).toSeq
    )
    val commits = results.map(_.commits)
    println(
      f"$processes x $writers writers, $micros us: ${commits.mkString(" ")}; sum ${commits.sum}, " +
        f"smallest share ${commits.min * processes.toDouble / commits.sum}%.2f of the mean, " +
        f"longest wait ${results.map(_.longestWait.toMillis).max / 1e3}%.1f s, " +
        s"misjudged ${JudgingWriters.misjudged(new TestTable(root).log).size}"
    )
  }
}

/** Without settings, over the file system. */
object StoreProcess extends JudgingProcess {
  override protected def open(table: TestTable, settings: Map[String, String]): CommitStore =
    if (settings.isEmpty) table.newStore
    else new PostgresStore(PostgresSettings.of("fairness", settings), _ => table.logStore)
}
