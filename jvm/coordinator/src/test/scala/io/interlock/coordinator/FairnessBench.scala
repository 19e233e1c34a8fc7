package io.interlock.coordinator

import java.nio.file.Files

/** What each of several processes gets of one table's commits, and the longest wait of any.
  *
  * Arguments: how many processes, writers of each, microseconds to judge one commit, seconds.
  */
object FairnessBench {
  def main(arguments: Array[String]): Unit = {
    val numbers = arguments.map(_.toInt)
    val (processes, writers, micros, seconds) = (numbers(0), numbers(1), numbers(2), numbers(3))
    val table = new TestTable(Files.createTempDirectory("interlock-fairness"))
    val all = Seq.fill(processes)(new JudgingWriters(table.log, table.newStore, micros * 1000L))
    val end = System.nanoTime + seconds * 1000000000L
    val threads = all.flatMap(process =>
      Seq.fill(writers)(new Thread(() => process.run(() => System.nanoTime < end)))
    )
    threads.foreach(_.start())
    threads.foreach(_.join())
    val each = all.map(process =>
      f"${process.committed.get} (longest wait ${process.longestWaitNanos / 1e9}%.1f s)"
    )
    val sum = all.map(_.committed.get).sum
    println(s"$processes x $writers writers, $micros us: ${each.mkString(", ")}; sum $sum, " +
      s"misjudged ${JudgingWriters.misjudged(table.log).size}")
  }
}
