package io.interlock.coordinator

import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{CREATE, WRITE}
import java.nio.file.{Files, Path => LocalPath, Paths}

import scala.concurrent.duration._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Processes that take turns, by a clock that stands still unless a test moves it; the lock is real. */
class HandOverSuite extends Tables {
  private var time = 0L
  private def pass(by: FiniteDuration): Unit = time += by.toNanos

  private def process(table: TestTable) =
    new HandOver(new FileProcessLock(table.log), () => time)

  private def file(table: TestTable) = table.folder.resolve(FileProcessLock.Name)

  table.test("a process that competes with no other needs no lock, and leaves no file") { table =>
    val alone = process(table)
    assert((1 to 100).forall { _ =>
      pass(10.millis)
      alone.mayCommit() && !alone.isInForce
    })
    assert(!Files.exists(file(table)))
  }

  table.test("who has lost a version takes turns, and who commits often notices it") { table =>
    val (ahead, behind) = (process(table), process(table))
    assert(ahead.mayCommit())
    behind.lost()
    assert(behind.mayCommit() && behind.isInForce)
    val noticed = (1 to 4).map { _ =>
      pass(50.millis)
      !ahead.mayCommit()
    }
    assert(noticed.last, "the other has the turn")
    behind.pass()
    assert(ahead.mayCommit() && ahead.isInForce)
    assert(!behind.mayCommit())
  }

  table.test("a turn ends after 100 ms, and the next one is another process's") { table =>
    val all = Vector.fill(3)(process(table))
    all.foreach(_.lost())
    assertEquals(all.map(_.mayCommit()), Vector(true, false, false))
    pass(10.millis)
    val turns = (1 to 6).map { _ =>
      pass(89.millis)
      assert(!all.exists(_.isOver))
      pass(1.milli)
      val before = all.indexWhere(_.isOver)
      all(before).pass()
      // The one before asks first, and all the same does not have it again.
      val next = (before +: all.indices.filter(_ != before)).filter(all(_).mayCommit())
      pass(10.millis)
      assertEquals(all.count(_.mayCommit()), 1)
      before -> next
    }
    assert(turns.forall { case (before, next) => next.size == 1 && next.head != before }, turns)
  }

  table.test("the time of a turn stands still while its process may not commit") { table =>
    val held = process(table)
    held.lost()
    assert(held.mayCommit())
    pass(60.millis)
    (1 to 3).foreach { _ =>
      held.pause()
      pass(1.second)
    }
    held.resume()
    pass(39.millis)
    assert(held.mayCommit() && !held.isOver)
    pass(1.milli)
    held.resume()
    assert(held.isOver)
  }

  /** Answers as other processes let it. */
  final private class Answered(var answer: ProcessLock.Answer) extends ProcessLock {
    override def isWanted: Boolean = answer != ProcessLock.Mine
    override def ask(): ProcessLock.Answer = answer
    override def release(): Unit = ()
  }

  test("a turn that does not end is waited for once, for two seconds") {
    val lock = new Answered(ProcessLock.Theirs(7))
    val waiting = new HandOver(lock, () => time)
    waiting.lost()
    assert(!waiting.mayCommit() && waiting.isInForce)
    pass(1999.millis)
    assert(!waiting.mayCommit())
    pass(1.milli)
    assert(waiting.mayCommit() && !waiting.isInForce)
    assert(waiting.mayCommit(), "not for each commit anew")
    lock.answer = ProcessLock.Theirs(8)
    assert(!waiting.mayCommit() && waiting.isInForce, "the next turn is")
    lock.answer = ProcessLock.Mine
    assert(waiting.mayCommit() && waiting.isInForce)
  }

  test("turns of others that end are waited for, however many there are") {
    val lock = new Answered(ProcessLock.Theirs(0))
    val waiting = new HandOver(lock, () => time)
    waiting.lost()
    (1 to 20).foreach { turn =>
      lock.answer = ProcessLock.Theirs(turn.toLong)
      assert(!waiting.mayCommit() && waiting.isInForce)
      pass(500.millis)
    }
  }

  table.test("five seconds after they last competed they go without the lock again") { table =>
    val met = process(table)
    met.lost()
    assert(met.mayCommit())
    met.pass()
    pass(5.seconds)
    assert(met.mayCommit() && !met.isInForce)
    assertEquals(new FileProcessLock(table.log).isWanted, false, "it holds nothing")
  }

  test("where there is no lock, nobody waits, and all race") {
    val racing = new HandOver(ProcessLock.None, () => time)
    racing.lost()
    assert(racing.mayCommit() && !racing.isInForce)
    pass(1.second)
    assert(!racing.isOver)
  }

  /** Another process, which asks and releases when it is told. */
  final private class Other(table: TestTable) extends AutoCloseable {
    private val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    private val main = WhoAsksForTurns.getClass.getName.stripSuffix("$")
    private val process = new ProcessBuilder(
      java,
      "-cp",
      System.getProperty("java.class.path"),
      main,
      table.folder.toString
    ).redirectError(ProcessBuilder.Redirect.INHERIT).start()

    def hasTurn(): Boolean = told('a') == '+'
    def release(): Unit = assertEquals(told('r'), '.')
    override def close(): Unit = process.destroyForcibly().waitFor(): Unit

    private def told(what: Char): Char = {
      process.getOutputStream.write(what.toInt)
      process.getOutputStream.flush()
      process.getInputStream.read().toChar
    }
  }

  table.test("a process that is killed has given its turn up") { table =>
    Using.resource(new Other(table)) { other =>
      assert(other.hasTurn())
      val own = new FileProcessLock(table.log)
      assert(own.isWanted && own.ask() == ProcessLock.Theirs(1))
      other.close()
      assertEquals(own.ask(), ProcessLock.Mine)
      own.release()
    }
  }

  table.test("processes have their turns in the order in which they asked") { table =>
    Using.Manager { use =>
      val one = new FileProcessLock(table.log)
      val two, three = use(new Other(table))
      assertEquals(one.ask(), ProcessLock.Mine)
      assert(!two.hasTurn() && !three.hasTurn())
      one.release()
      assert(!three.hasTurn(), "it asks first, but is behind another")
      assert(one.ask().isInstanceOf[ProcessLock.Theirs], "it is behind both")
      assert(two.hasTurn())
      two.release()
      assert(one.ask().isInstanceOf[ProcessLock.Theirs])
      assert(!two.hasTurn() && three.hasTurn())
      three.close()
      assert(!two.hasTurn())
      assertEquals(one.ask(), ProcessLock.Mine, "the one that had it was killed")
      one.release()
      assert(two.hasTurn())
    }.get
  }

  /** A process waits in line between one that has the turn and one that must not wait for it. */
  private def between(table: TestTable)(leaveLine: HandOver => Unit): Unit =
    Using.Manager { use =>
      val own = process(table)
      val first, killed, last = use(new Other(table))
      assert(first.hasTurn() && !killed.hasTurn())
      own.lost()
      assert(!own.mayCommit() && !last.hasTurn())
      killed.close()
      leaveLine(own)
      first.release()
      assert(last.hasTurn())
    }.get

  table.test("who is killed in the line, or no longer wants a turn, has no place in it") { table =>
    between(table)(_.pass())
  }

  table.test("who no longer competes gives its place up") { table =>
    between(table) { own =>
      pass(5.seconds)
      assert(own.mayCommit() && !own.isInForce)
    }
  }

  table.test("a queue waits as long for another one of its process as for other processes") {
    table =>
      Using.Manager { use =>
        val stopped = use(new Other(table))
        val both = Seq.fill(2)(process(table))
        assert(stopped.hasTurn())
        both.foreach(_.lost())
        assert(both.forall(!_.mayCommit()))
        pass(1999.millis)
        assert(both.forall(!_.mayCommit()))
        pass(1.milli)
        assert(both.forall(_.mayCommit()))
        both.foreach(_.pass())
      }.get
  }

  private def logAt(folder: LocalPath) =
    TableLog(new Path("file", "", folder.toString), new Configuration(false))

  table.test("a folder that is reached by another name is locked as well") { table =>
    val name = table.root.resolve("other name")
    val lock = new FileProcessLock(logAt(name.resolve("_delta_log")))
    Files.createSymbolicLink(name, table.folder.getParent)
    val own = new FileProcessLock(table.log)
    assertEquals(own.ask(), ProcessLock.Mine)
    assert(lock.ask().isInstanceOf[ProcessLock.Theirs])
    own.release()
    assertEquals(lock.ask(), ProcessLock.Mine)
    lock.release()
  }

  table.test("who finds the last place taken waits until it is free") { table =>
    Using.Manager { use =>
      val other = use(new Other(table))
      val last = use(FileChannel.open(file(table), CREATE, WRITE)).lock(16, 1, false)
      assert(!other.hasTurn())
      last.release()
      assert(other.hasTurn())
    }.get
  }

  table.test("of two queues of one process that have a log in common one has the turn") { table =>
    Using.resource(new Other(table)) { process =>
      val (one, other) = (new FileProcessLock(table.log), new FileProcessLock(table.log))
      assertEquals(one.ask(), ProcessLock.Mine)
      assert(other.ask().isInstanceOf[ProcessLock.Theirs])
      other.release()
      assert(other.isWanted)
      assert(!process.hasTurn(), "closing the file would have released the lock of the first")
      process.release()
      one.release()
      assertEquals(other.ask(), ProcessLock.Mine)
      other.release()
    }
  }

  table.test("a link in the place of the file is not followed") { table =>
    val target = table.root.resolve("elsewhere")
    Files.createSymbolicLink(file(table), target)
    val lock = new FileProcessLock(table.log)
    assertEquals(lock.ask(), ProcessLock.Missing)
    assert(!lock.isWanted)
    assert(!Files.exists(target))
  }

  table.test("where the file cannot be made, there is no lock, and no folder is made") { table =>
    val lock = new FileProcessLock(logAt(table.root.resolve("no such folder")))
    assertEquals(lock.ask(), ProcessLock.Missing)
    lock.release()
    assert(!Files.exists(table.root.resolve("no such folder")))
  }

  table.test("an interrupted thread does not commit, and an interrupt does not end the lock") {
    table =>
      val queue = new CommitQueue(table.log, table.store)
      Thread.currentThread().interrupt()
      val isRefused =
        try {
          queue.takeTurn()
          false
        } catch { case _: InterruptedException => true }
      assert(isRefused)
      queue.takeTurn()
      queue.passTurn()
      val lock = new FileProcessLock(table.log)
      Thread.currentThread().interrupt()
      assert(lock.ask().isInstanceOf[ProcessLock.Theirs])
      assert(Thread.interrupted())
      assertEquals(lock.ask(), ProcessLock.Mine)
      lock.release()
  }
}

/** A process that asks for its turn, or gives it up, for each byte that it reads. */
object WhoAsksForTurns {
  def main(arguments: Array[String]): Unit = {
    val lock =
      new FileProcessLock(TableLog(new Path("file", "", arguments.head), new Configuration(false)))
    Iterator.continually(System.in.read()).takeWhile(_ >= 0).foreach { what =>
      if (what == 'r') lock.release()
      print(if (what == 'r') '.' else if (lock.ask() == ProcessLock.Mine) '+' else '-')
      System.out.flush()
    }
  }
}
