package org.apache.spark.sql.delta.interlock.rebase

import java.io.{FileNotFoundException, IOException}

import scala.collection.mutable

import io.interlock.rules.rebase.RowSet
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor
import org.apache.spark.sql.delta.commands.DeletionVectorWriter.DeletionVectorMapperContext
import org.apache.spark.sql.delta.commands.{DeletionVectorUtils, DeletionVectorWriter}
import org.apache.spark.sql.delta.deletionvectors._
import org.apache.spark.sql.delta.storage.dv.DeletionVectorStore

/** The deletion vectors which the rebases of one transaction read and write.
  *
  * A vector's token is its descriptor as text; the empty text stands for no vector. Each vector is
  * loaded once.
  *
  * @param staged
  *   called for each file of vectors that is begun
  */
final private[interlock] class RowVectors(deltaLog: DeltaLog, staged: Path => Unit) {
  private lazy val conf = deltaLog.newDeltaHadoopConf()
  private lazy val store = DeletionVectorStore.createInstance(conf)
  private val loaded = mutable.Map.empty[String, RowSet]
  private var file: Option[DeletionVectorMapperContext] = None

  /** @param token
    *   the vector's token; the empty token has no rows
    */
  def rowsOf(token: String): RowSet =
    if (token.isEmpty) RowSet.empty else loaded.getOrElseUpdate(token, load(token))

  private def load(token: String): RowSet = {
    val descriptor = DeletionVectorDescriptor.deserializeFromBase64(token)
    val bitmap = StoredBitmap.create(descriptor, deltaLog.dataPath).load(store)
    RowSet.build(add => bitmap.forEach(add))
  }

  /** Stores vectors in a file of the table, the same file until `finish`. It is deleted again if
    * the commit fails.
    *
    * @param vectors
    *   vectors, none of them empty
    * @return
    *   their descriptors, in the same order
    */
  def write(vectors: Seq[RowSet]): Seq[DeletionVectorDescriptor] = vectors.map(write)

  /** To be called before the descriptors that `write` gave are committed. */
  def finish(): Unit = {
    file.foreach(_.writer.close())
    file = None
  }

  private def openFile(): DeletionVectorMapperContext = {
    val table = store.pathWithFileSystem(deltaLog.dataPath)
    val (writer, id) = DeletionVectorWriter.createWriter(store, table)
    staged(store.generateFileNameInTable(table, id).path)
    val opened =
      DeletionVectorMapperContext(store, writer, deltaLog.dataPath, id, prefix = "")
    file = Some(opened)
    opened
  }

  private def write(rows: RowSet): DeletionVectorDescriptor = {
    val descriptor =
      try
        DeletionVectorWriter
          .storeSerializedBitmap(file.getOrElse(openFile()), RowVectors.bytes(rows), rows.size)
      catch {
        // Writing the first vector opens the file; without this its failure would look like a
        // vector that is gone.
        case e: FileNotFoundException => throw new IOException(s"No vector can be written: $e", e)
      }
    loaded += RowVectors.token(descriptor) -> rows
    descriptor
  }
}

private[interlock] object RowVectors {

  /** The reason why a job fails if a file of vectors that it needs is gone. */
  val Gone = "a deletion vector it needs is gone (VACUUM must retain more than the longest job)"

  /** @param descriptor
    *   null for no vector
    */
  def token(descriptor: DeletionVectorDescriptor): String =
    Option(descriptor).filterNot(_.isEmpty).fold("")(_.serializeToBase64())

  /** A vector that is not stored in a file, for reading only.
    *
    * @return
    *   null for no rows
    */
  def inMemory(rows: RowSet): DeletionVectorDescriptor =
    if (rows.isEmpty) null else DeletionVectorDescriptor.inlineInLog(bytes(rows), rows.size)

  private def bytes(rows: RowSet): Array[Byte] = {
    val bitmap = new RoaringBitmapArray()
    rows.foreachRange((from, until) =>
      if (until == from + 1) bitmap.add(from) else bitmap.addRange(from until until)
    )
    bitmap.runOptimize()
    DeletionVectorUtils.serialize(bitmap, RoaringBitmapArrayFormat.Portable)
  }
}
