package io.interlock.coordinator

import java.nio.file.attribute.BasicFileAttributes

import org.apache.hadoop.fs.{FileStatus, Path}

/** The status of a file on a local disk, with its identity: a new file of the same name and size
  * differs.
  */
final private[coordinator] class LocalStatus(file: Path, found: BasicFileAttributes)
    extends FileStatus(
      found.size,
      found.isDirectory,
      1,
      32L << 20, // Hadoop's block size for local files
      found.lastModifiedTime.toMillis,
      file
    ) {

  @transient private val identity = (found.fileKey, found.size, found.lastModifiedTime)

  def sameFile(other: LocalStatus): Boolean = identity == other.identity
}
