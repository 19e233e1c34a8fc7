package io.interlock.coordinator

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, IOException, InputStream}
import java.net.URI

import io.delta.storage.S3SingleDriverLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Abortable.AbortableResult
import org.apache.hadoop.fs._

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
    val out = create(path, !obeys)
    out.write(bytes)
    out.close()
  }
}

class LawlessFileSystem extends ConditionalFileSystem {
  override protected def obeys: Boolean = false
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
