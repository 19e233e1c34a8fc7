package io.interlock.coordinator

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, File, IOException, InputStream}
import java.net.URI
import java.nio.file.StandardOpenOption.{CREATE, CREATE_NEW, WRITE}
import java.nio.file.{
  AccessDeniedException,
  FileAlreadyExistsException => JFileAlreadyExistsException,
  Files
}
import java.time.Instant
import java.util.concurrent.CyclicBarrier

import io.delta.storage.{GCSLogStore, HDFSLogStore, S3SingleDriverLogStore}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Abortable.AbortableResult
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.viewfs.ViewFileSystem
import org.apache.hadoop.util.Progressable

/** Commits by Hadoop's conditional create, on local disks that behave like S3A. */
class ConditionalCreateSuite extends Tables {
  table.test("the writer that creates a version has it") { table =>
    val log = logOf(table, classOf[ConditionalFileSystem])
    assertCommitted(committed(log, table.request(0, "t0")), 0)
    assertTaken(table, committed(log, table.request(0, "t1")), 0)
    assertCommitted(committed(log, table.request(1, "t1")), 1)
    assertLog(table, "t0", "t1")
  }

  table.test("a commit that cannot be read to its end makes no file") { table =>
    val log = logOf(table, classOf[ConditionalFileSystem])
    val torn = new InputStream {
      private val bytes = "torn".iterator
      override def read(): Int =
        if (bytes.hasNext) bytes.next().toInt else throw new IOException("torn")
    }
    val creation = FileCreation.of(log, new S3SingleDriverLogStore(log.conf))
    intercept[IOException](creation.create(log.file(0), torn))
    assertEquals(table.names, Set.empty[String])
    creation.create(log.file(0), new ByteArrayInputStream("whole".getBytes))
    assertEquals(table.read(0), Seq("whole"))
  }

  table.test("a server that ignores the condition is refused") { table =>
    val log = logOf(table, classOf[LawlessFileSystem])
    committed(log, table.request(0, "t0")) match {
      case Failed(refused: CoordinatorException) =>
        assertEquals(refused.condition, "INTERLOCK_NO_PUT_IF_ABSENT")
        assertEquals(refused.parameters("found"), "its server ignores If-None-Match")
      case other => fail(s"$other")
    }
    assertEquals(table.names, Set.empty[String])
  }

  table.test("of writers that race, one makes the file") { table =>
    val trial = tried(logOf(table, classOf[ConditionalFileSystem]), races = 20)
    assertEquals(trial.found, "each of 20 races of 8 writers had one winner")
    assert(trial.passed)
    assertEquals(table.names, Set.empty[String])
  }

  table.test("a server that looks first and writes later is found out by a race") { table =>
    val log = logOf(table, classOf[HastyFileSystem])
    val trial = tried(log, races = 3)
    assertEquals(trial.found, "3 of 3 races of 8 writers had more than one winner")
    assert(!trial.passed)
    assertEquals(table.names, Set.empty[String])
  }

  table.test("a server that refuses all shows nothing") { table =>
    val refused =
      intercept[IOException](tried(logOf(table, classOf[ReadOnlyFileSystem]), races = 1))
    assertEquals(refused.getMessage, "read only")
  }

  table.test("a race whose winner got no reply shows nothing against a server") { table =>
    assert(tried(logOf(table, classOf[SilentFileSystem]), races = 2).passed)
  }

  table.test("a server that keeps the file of another writer is found out") { table =>
    val trial = tried(logOf(table, classOf[ForgetfulFileSystem]), races = 2)
    assertEquals(trial.found, "2 of 2 races of 8 writers had a file of another writer")
  }

  table.test("a bucket that has failed a race takes no commits until it passes one") { table =>
    val log = logOf(table, classOf[RootedFileSystem])
    log.conf.set("root", table.folder.toString)
    val failed = StoreTrial(Instant.now(), passed = false, "12 of 100 races had two winners")
    StoreTrial.keep(failed, log.conf, log.path)
    assertEquals(StoreTrial.kept(log.conf, log.path), Some(failed))
    committed(log, table.request(0, "t0")) match {
      case Failed(refused: CoordinatorException) =>
        assert(refused.parameters("found").endsWith(failed.found), refused.parameters)
      case other => fail(s"$other")
    }
    StoreTrial.keep(failed.copy(passed = true), log.conf, log.path)
    assertCommitted(committed(log, table.request(0, "t0")), 0)
  }

  table.test("so does one in which Delta's LogStore makes the files") { table =>
    val log = logOf(table, classOf[ClosingFileSystem])
    log.conf.set("root", table.folder.toString)
    def commit(): CommitOutcome =
      new FileSystemStore(log => new GCSLogStore(log.conf)).commit(
        log,
        Seq(table.request(0, "t0"))
      ).head
    val failed = StoreTrial(Instant.now(), passed = false, "96 of 100 races had two winners")
    StoreTrial.keep(failed, log.conf, log.path)
    commit() match {
      case Failed(refused: CoordinatorException) =>
        assertEquals(refused.condition, "INTERLOCK_NO_PUT_IF_ABSENT")
        assert(refused.parameters("found").endsWith(failed.found), refused.parameters)
      case other => fail(s"$other")
    }
    val again = StoreTrial.run(log, new GCSLogStore(log.conf))
    assertEquals(again.found, "each of 100 races of 32 writers had one winner")
    StoreTrial.keep(again, log.conf, log.path)
    assertCommitted(commit(), 0)
  }

  table.test("where nobody knows what a rename replaces, a race must have been passed") { table =>
    val log = logOf(table, classOf[UnknownFileSystem])
    log.conf.set("root", table.folder.toString)
    val logStore = new GCSLogStore(log.conf)
    def fault = FileCreation.of(log, logStore).fault
    assertEquals(
      fault,
      Some(s"`interlock doctor ${log.path.getParent}` has not shown that no file is made twice")
    )
    assert(StoreTrial.run(log, logStore).passed)
    assertEquals(fault, None)
  }

  /** A log that is reached through a mount point. Hadoop remembers the mounts of a cluster. */
  private def mounted(table: TestTable, scheme: String): TableLog = {
    val cluster = s"$scheme-${table.root.getFileName}"
    val conf = new Configuration(false)
    conf.set("root", table.root.toString)
    conf.set("fs.viewfs.impl", classOf[ViewFileSystem].getName)
    conf.set("fs.s3x.impl", classOf[BucketFileSystem].getName)
    conf.set(s"fs.viewfs.mounttable.$cluster.link./data", s"$scheme://${table.root}")
    TableLog(new Path(s"viewfs://$cluster/data/t/_delta_log"), conf)
  }

  table.test("what viewfs mounts from S3 is not renamed") { table =>
    val log = mounted(table, "s3x")
    FileCreation.of(log, new HDFSLogStore(log.conf)) match {
      case other: LogStoreCreation => fail(s"${other.fault}")
      case _: ConditionalCreation =>
      case other => fail(s"$other")
    }
  }

  table.test("a result for what viewfs mounts is kept in the storage behind it") { table =>
    val log = mounted(table, "s3x")
    val trial = StoreTrial(Instant.now(), passed = true, "one winner")
    StoreTrial.keep(trial, log.conf, log.path)
    assert(Files.exists(table.root.resolve("_interlock_store.properties")))
    assertEquals(StoreTrial.kept(log.conf, log.path), Some(trial))
    assert(StoreTrial.isNeeded(log.conf, log.path))
    val onDisk = mounted(table, "file")
    assert(StoreTrial.isNeeded(onDisk.conf, onDisk.path), "it may be a network's")
    assert(!StoreTrial.isNeeded(table.log.conf, table.log.path))
  }

  table.test("a server that is busy has not shown that it obeys") { table =>
    committed(logOf(table, classOf[BusyFileSystem]), table.request(0, "t0")) match {
      case Failed(busy) => assertEquals(busy.getMessage, "503")
      case other => fail(s"$other")
    }
  }

  table.test("a request that is refused may follow one that is under way") { table =>
    val log = logOf(table, classOf[ForbiddingFileSystem])
    committed(log, table.request(0, "t0")) match {
      case Unknown(unknown: PublishUnknown) =>
        assert(unknown.getCause.isInstanceOf[AccessDeniedException], unknown.getCause)
      case other => fail(s"$other")
    }
  }

  table.test("a result that is hidden is none, and one that cannot be read may be a fault") {
    table =>
      val log = logOf(table, classOf[HidingFileSystem])
      log.conf.set("root", table.folder.toString)
      def kept = StoreTrial.kept(log.conf, log.path)
      Files.writeString(table.folder.resolve("_interlock_store.properties"), "found=\\u00")
      assertEquals(kept, None)
      HidingFileSystem.fault = Some(new AccessDeniedException("403"))
      assertEquals(kept, None)
      HidingFileSystem.fault = Some(new IOException("503"))
      intercept[IOException](kept)
  }

  private def tried(log: TableLog, races: Int): StoreTrial =
    StoreTrial.run(log, FileCreation.of(log, new S3SingleDriverLogStore(log.conf)), races, 8)

  private def logOf(table: TestTable, fileSystem: Class[_ <: ConditionalFileSystem]): TableLog = {
    val conf = new Configuration(false)
    val scheme = fileSystem.getSimpleName.toLowerCase
    conf.set(s"fs.$scheme.impl", fileSystem.getName)
    TableLog(new Path(scheme, "", table.folder.toString), conf)
  }

  private def committed(log: TableLog, request: CommitRequest): CommitOutcome =
    new FileSystemStore(log => new S3SingleDriverLogStore(log.conf)).commit(log, Seq(request)).head
}

/** A local disk whose files are made when they are closed, if there are none by then. */
class ConditionalFileSystem extends RawLocalFileSystem {
  protected def obeys: Boolean = true

  override def getUri: URI = URI.create(s"${getClass.getSimpleName.toLowerCase}:///")

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == ConditionalCreation.ConditionalOverwrite

  override def createFile(path: Path): ConditionalBuilder = new ConditionalBuilder(this, path)

  def make(path: Path, bytes: Array[Byte]): Unit = {
    mkdirs(path.getParent)
    val option = if (obeys) CREATE_NEW else CREATE
    try Files.write(pathToFile(path).toPath, bytes, option, WRITE): Unit
    catch {
      case _: JFileAlreadyExistsException => throw new FileAlreadyExistsException(path.toString)
    }
  }
}

class LawlessFileSystem extends ConditionalFileSystem {
  override protected def obeys: Boolean = false
}

/** It looks for the file when all writers of a race have come, and writes behind that. */
class HastyFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit = {
    val isTaken = exists(path)
    HastyFileSystem.haveLooked.await()
    if (isTaken) throw new FileAlreadyExistsException(path.toString)
    val out = create(path, true)
    out.write(bytes)
    out.close()
  }
}

object HastyFileSystem {
  private val haveLooked = new CyclicBarrier(8)
}

class ReadOnlyFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit = throw new IOException("read only")
}

/** It makes a file once, and tells nobody. */
class SilentFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit = {
    super.make(path, bytes)
    throw new IOException("no reply")
  }
}

/** It makes a file once, of something else. */
class ForgetfulFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit = super.make(path, "?".getBytes)
}

/** Its root is a folder of the disk, so that a file can be kept there. */
class RootedFileSystem extends ConditionalFileSystem {
  override def pathToFile(path: Path): File = {
    val root = getConf.get("root")
    val asked = path.toUri.getPath
    if (asked.startsWith(root)) new File(asked) else new File(root, asked)
  }
}

/** Whatever must not be there yet is made when it is closed, as Google's client does. */
class ClosingFileSystem extends RootedFileSystem {
  override def create(
      path: Path,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream =
    if (overwrite) super.create(path, overwrite, bufferSize, replication, blockSize, progress)
    else new FSDataOutputStream(new MadeAtTheEnd(make(path, _)), null)
}

class UnknownFileSystem extends ClosingFileSystem

/** It answers the first request for a file only. */
class BusyFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit =
    if (exists(path)) throw new IOException("503") else super.make(path, bytes)
}

/** It lets nobody make a version. */
class ForbiddingFileSystem extends ConditionalFileSystem {
  override def make(path: Path, bytes: Array[Byte]): Unit =
    if (path.getName.endsWith(".json")) throw new AccessDeniedException(path.toString)
    else super.make(path, bytes)
}

class HidingFileSystem extends RootedFileSystem {
  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    HidingFileSystem.fault.foreach(throw _)
    super.open(path, bufferSize)
  }
}

object HidingFileSystem {
  @volatile var fault = Option.empty[IOException]
}

/** It is reached through a mount point of `viewfs`. */
class BucketFileSystem extends RootedFileSystem {
  override def getUri: URI = URI.create("s3x:///")
}

final class ConditionalBuilder(fs: ConditionalFileSystem, path: Path)
    extends FSDataOutputStreamBuilder[FSDataOutputStream, ConditionalBuilder](fs, path) {
  override def getThisBuilder: ConditionalBuilder = this

  override def build(): FSDataOutputStream = {
    require(getMandatoryKeys.contains(ConditionalCreation.ConditionalOverwrite))
    new FSDataOutputStream(new MadeAtTheEnd(fs.make(path, _)), null)
  }
}

final class MadeAtTheEnd(make: Array[Byte] => Unit) extends ByteArrayOutputStream with Abortable {
  private var isOver = false

  override def close(): Unit = if (!isOver) {
    isOver = true
    make(toByteArray)
  }

  override def abort(): AbortableResult = {
    isOver = true
    null
  }
}
