package io.interlock.coordinator

import org.apache.hadoop.fs.{EtagSource, FileStatus}

/** Whether a file has not been replaced. S3 may tell its time in seconds where it is asked for, and
  * in milliseconds where it is listed.
  */
object SameFile {
  def apply(before: FileStatus, now: FileStatus): Boolean = (before, now) match {
    case (before: EtagSource, now: EtagSource) if before.getEtag != null =>
      before.getEtag == now.getEtag
    case _ => before.getLen == now.getLen && before.getModificationTime == now.getModificationTime
  }
}
