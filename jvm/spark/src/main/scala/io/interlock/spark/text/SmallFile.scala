package io.interlock.spark.text

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

import org.apache.hadoop.fs.{FileStatus, FileSystem}

/** Reads a small file in bounded time, even if somebody has put something else in its place. */
private[spark] object SmallFile {

  /** The text of a file of at most `most` bytes; none if it is empty or not a file. */
  def read(fs: FileSystem, file: FileStatus, most: Int)(tooLarge: => Nothing): Option[String] =
    // A pipe has length 0 too, and reading it could wait for ever.
    if (file.isDirectory || file.getLen == 0) None
    else if (file.getLen > most) tooLarge
    else Some(Using.resource(fs.open(file.getPath))(in => new String(in.readNBytes(most), UTF_8)))
}
