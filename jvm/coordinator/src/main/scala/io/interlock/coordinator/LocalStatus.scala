package io.interlock.coordinator

import java.nio.file.attribute.BasicFileAttributes

import org.apache.hadoop.fs.{FileStatus, Path}

/** A file on a local disk, and which file it is: another one of the same name and size is not the
  * same.
  */
final private[coordinator] class LocalStatus(file: Path, found: BasicFileAttributes)
    extends FileStatus(
      found.size,
      found.isDirectory,
      1,
      32L << 20, // what Hadoop says of local files
      found.lastModifiedTime.toMillis,
      file
    ) {

  @transient private val identity = (found.fileKey, found.size, found.lastModifiedTime)

  def sameFile(other: LocalStatus): Boolean = identity == other.identity
}
