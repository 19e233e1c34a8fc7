package io.interlock.spark.text

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

import org.apache.hadoop.fs.{FileStatus, FileSystem}

/** Reads what somebody else may have put in the place of a small file, in bounded time. */
private[spark] object SmallFile {

  /** The text of a file of at most `most` bytes; none of what is empty or no file.
    *
    * @param tooLarge
    *   what becomes of a larger one
    */
  def read(fs: FileSystem, file: FileStatus, most: Int)(tooLarge: => Nothing): Option[String] =
    // A pipe is empty too, and nobody might write to it.
    if (file.isDirectory || file.getLen == 0) None
    else if (file.getLen > most) tooLarge
    else Some(Using.resource(fs.open(file.getPath))(in => new String(in.readNBytes(most), UTF_8)))
}
