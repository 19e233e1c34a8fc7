package org.apache.spark.sql.delta.interlock.log

import java.io.IOException
import java.nio.file.Files
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.duration._
import scala.concurrent.{Await, ExecutionContext, Future}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path, RawLocalFileSystem}

class LogFilesSuite extends munit.FunSuite {
  private val folder = Files.createTempDirectory("log-files")
  private def file(name: String) = new Path(folder.resolve(name).toUri)
  Files.writeString(folder.resolve("a"), "aa")
  Files.writeString(folder.resolve("b"), "b")

  private class Server(meet: Path => Unit = _ => ()) extends RawLocalFileSystem {
    initialize(folder.toUri, new Configuration(false))
    override def getFileStatus(file: Path): FileStatus = {
      meet(file)
      super.getFileStatus(file)
    }
  }

  private def raisedBy(work: => Any): Option[Throwable] =
    try {
      val _ = work
      None
    } catch { case raised: Throwable => Some(raised) }

  private def sizes(found: Seq[Option[FileStatus]]) = found.map(_.map(_.getLen))

  test("files that are there and files that are not, in the order in which they are asked for") {
    val files = new LogFiles.OnServer(new Server())
    val asked = Seq("a", "no", "b", "no", "a").map(file)
    val expected = Seq(Some(2L), None, Some(1L), None, Some(2L))
    for (n <- 0 to asked.size) assertEquals(sizes(files.look(asked, n)), expected)
  }

  for (error <- Seq(new IOException("down"), new NoSuchMethodError("of another Hadoop")))
    test(s"a look that fails by ${error.getClass.getSimpleName} ends") {
      val files = new LogFiles.OnServer(new Server(path => if (path.getName == "b") throw error))
      val raised = raisedBy(files.look(Seq("a", "b").map(file), expected = 2))
      assertEquals(raised, Some(error))
    }

  test("a server that hangs does not hold those of another, and lets go of an interrupted thread") {
    val hung = new CountDownLatch(40)
    val never = new CountDownLatch(1)
    val interrupted = new CountDownLatch(20)
    val files = Seq("a", "b").map(file)
    val stuck = new LogFiles.OnServer(new Server(_ => {
      hung.countDown()
      never.await()
    }))
    val threads = Seq.fill(20)(new Thread(() => {
      if (raisedBy(stuck.look(files, expected = 2)).exists(_.isInstanceOf[InterruptedException]))
        interrupted.countDown()
    }))
    threads.foreach(_.start())
    assert(hung.await(20, TimeUnit.SECONDS))
    val other = Future(new LogFiles.OnServer(new Server()).look(Seq(file("a")), expected = 1))(
      ExecutionContext.global
    )
    assertEquals(sizes(Await.result(other, 20.seconds)), Seq(Some(2L)))
    threads.foreach(_.interrupt())
    assert(interrupted.await(20, TimeUnit.SECONDS))
  }
}
