package io.interlock.coordinator

import java.nio.file.{Files, Paths}

import scala.concurrent.duration._

/** Processes that take turns, by a clock that stands still unless a test moves it; the lock is real. */
class HandOverSuite extends Tables {
  private var time = 0L
  private def pass(by: FiniteDuration): Unit = time += by.toNanos

  private def process(table: TestTable) =
    new HandOver(new FileProcessLock(table.folder), () => time)

  private def file(table: TestTable) = table.folder.resolve(FileProcessLock.Name)

  table.test("a process that meets no other needs no lock, and leaves no file") { table =>
    val alone = process(table)
    assert((1 to 100).forall { _ =>
      pass(10.millis)
      alone.mayCommit() && !alone.isInForce
    })
    assert(!Files.exists(file(table)))
  }

  table.test("who has lost a version takes turns, and who has not notices it") { table =>
    val (ahead, behind) = (process(table), process(table))
    assert(ahead.mayCommit())
    behind.lost()
    assert(behind.mayCommit() && behind.isInForce)
    pass(60.millis)
    assert(!ahead.mayCommit(), "it is busy, and sees that the other has the turn")
    behind.pass()
    assert(ahead.mayCommit())
    assert(!behind.mayCommit())
  }

  table.test(
    "a process has its turn for 200 ms, and gets the next one when the others had theirs"
  ) {
    table =>
      val all = Vector.fill(3)(process(table))
      all.foreach(_.lost())
      assertEquals(all.map(_.mayCommit()), Vector(true, false, false))
      val turns = (1 to 6).map { _ =>
        pass(200.millis)
        val before = all.indexWhere(_.isOver)
        all(before).pass()
        // The one before asks first each time, and all the same does not have it again.
        val inOrder = before +: all.indices.filter(_ != before)
        (1 to 6).foreach { _ =>
          inOrder.foreach(all(_).mayCommit())
          pass(1.milli)
        }
        inOrder.filter(all(_).mayCommit())
      }
      assert(turns.forall(_.size == 1), turns)
      assert(turns.sliding(2).forall(pair => pair.head != pair.last), turns)
      assertEquals(turns.flatten.toSet, Set(0, 1, 2))
  }

  table.test("one that keeps its turn is waited for once, for two seconds") { table =>
    val (stopped, other) = (process(table), process(table))
    stopped.lost()
    other.lost()
    assert(stopped.mayCommit() && !other.mayCommit())
    pass(1999.millis)
    assert(!other.mayCommit())
    pass(1.milli)
    assert(other.mayCommit() && !other.isInForce)
    other.pass()
    assert(other.mayCommit(), "not for each commit anew")
    stopped.pass()
    assert(other.mayCommit() && other.isInForce)
    assert(!stopped.mayCommit())
  }

  table.test("five seconds after the last meeting they go without again") { table =>
    val met = process(table)
    met.lost()
    assert(met.mayCommit())
    met.pass()
    pass(5.seconds)
    assert(met.mayCommit() && !met.isInForce)
    assert(new FileProcessLock(table.folder).tryTake(), "it holds nothing")
  }

  table.test("a process that is killed has given its turn up") { table =>
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val other = new ProcessBuilder(
      java,
      "-cp",
      System.getProperty("java.class.path"),
      HolderOfATurn.getClass.getName.stripSuffix("$"),
      table.folder.toString
    ).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    try {
      assertEquals(other.getInputStream.read(), '+'.toInt)
      val own = new FileProcessLock(table.folder)
      assert(own.isWanted && !own.tryTake())
      other.destroyForcibly().waitFor(): Unit
      assert(own.tryTake())
    } finally other.destroyForcibly().waitFor(): Unit
  }

  table.test("a lock on a file that was deleted since keeps nobody out") { table =>
    val (one, other) = (new FileProcessLock(table.folder), new FileProcessLock(table.folder))
    assert(one.tryTake() && !other.tryTake())
    Files.delete(file(table))
    assert(other.tryTake())
    one.release()
    assert(!one.tryTake(), "it looks at the file that is there")
  }

  table.test("where the file cannot be made, commits are made without") { table =>
    val lock = new FileProcessLock(table.root.resolve("no such folder"))
    assert(lock.tryTake() && !lock.isWanted)
    lock.release()
    assert(!Files.exists(table.root.resolve("no such folder")))
  }
}

/** A process that has its turn, and keeps it. */
object HolderOfATurn {
  def main(arguments: Array[String]): Unit = {
    val lock = new FileProcessLock(Paths.get(arguments.head))
    print(if (lock.tryTake()) '+' else '-')
    System.out.flush()
    while (System.in.read() >= 0) {}
  }
}
