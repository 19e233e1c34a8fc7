package io.interlock.coordinator

import java.io.{BufferedReader, InputStreamReader, PrintStream}
import java.nio.file.{Path => LocalPath, Paths}

import scala.concurrent.duration._

/** [[JudgingWriters]] in JVMs of their own. For objects, whose `main` each process runs. */
trait JudgingProcess {
  import JudgingProcess._

  protected def open(table: TestTable, settings: Map[String, String]): CommitStore

  /** Starts processes, lets them write at the same time, and gives what became of each.
    *
    * @param root
    *   of the table
    * @param judging
    *   how long it takes to judge against one commit
    * @param coordinator
    *   settings of the store, as `key=value`
    */
  def run(
      root: LocalPath,
      processes: Int,
      writers: Int,
      judging: FiniteDuration,
      until: Until,
      coordinator: Seq[String] = Nil
  ): Seq[Result] = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val (nanos, versions) = until match {
      case For(time) => (time.toNanos, Long.MaxValue)
      case Versions(count) => (Long.MaxValue, count)
    }
    val command = Seq(java, "-Xmx512m", Quick, "-cp", ClassPath) ++
      Seq(getClass.getName.stripSuffix("$"), root.toString) ++
      Seq(writers.toLong, judging.toNanos, nanos, versions).map(_.toString) ++ coordinator
    val children = Seq.fill(processes)(
      new ProcessBuilder(command: _*).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    )
    try {
      val replies =
        children.map(child => new BufferedReader(new InputStreamReader(child.getInputStream)))
      replies.foreach(_.readLine())
      children.foreach(child => new PrintStream(child.getOutputStream, true).println("go"))
      replies.map(_.readLine().split(' ')).map(found =>
        Result(found(0).toInt, found(1).toLong.nanos)
      )
    } finally children.foreach(_.destroyForcibly().waitFor())
  }

  def main(arguments: Array[String]): Unit = {
    val numbers = arguments.slice(1, 5).map(_.toLong)
    val (writers, judging, nanos, versions) =
      (numbers(0).toInt, numbers(1), numbers(2), numbers(3))
    val table = new TestTable(Paths.get(arguments.head))
    val settings = arguments.drop(5).map(_.split("=", 2)).map(pair => pair(0) -> pair(1)).toMap
    val process = new JudgingWriters(table.log, open(table, settings), judging)
    println("ready")
    System.in.read(): Unit
    val start = System.nanoTime
    def isWanted(next: Long) = next < versions && System.nanoTime - start < nanos
    val threads = Seq.fill(writers)(new Thread(() => process.run(isWanted)))
    threads.foreach(_.start())
    threads.foreach(_.join())
    println(s"${process.committed.get} ${process.longestWaitNanos}")
  }
}

object JudgingProcess {

  /** Compiles less: a process of some seconds would do little else. */
  private val Quick = "-XX:TieredStopAtLevel=1"
  private val ClassPath = System.getProperty("java.class.path")

  sealed trait Until
  final case class For(time: FiniteDuration) extends Until

  /** Until the log has so many versions. */
  final case class Versions(count: Long) extends Until

  final case class Result(commits: Int, longestWait: FiniteDuration)
}

object FileSystemProcess extends JudgingProcess {
  override protected def open(table: TestTable, settings: Map[String, String]): CommitStore =
    table.newStore
}
