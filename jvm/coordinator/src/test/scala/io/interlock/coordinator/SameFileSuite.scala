package io.interlock.coordinator

import org.apache.hadoop.fs.{EtagSource, FileStatus, Path}

class SameFileSuite extends munit.FunSuite {
  test("a file is the same by its ETag, or by its size and time if the server gives none") {
    def status(size: Long, time: Long) = new FileStatus(size, false, 1, 0, time, new Path("a"))
    def tagged(tag: String, size: Long, time: Long): FileStatus =
      new FileStatus(size, false, 1, 0, time, new Path("a")) with EtagSource {
        override def getEtag: String = tag
      }
    assert(SameFile(tagged("x", 1, 1000), tagged("x", 1, 1001)))
    assert(!SameFile(tagged("x", 1, 1000), tagged("y", 1, 1000)))
    assert(SameFile(tagged(null, 1, 1000), tagged(null, 1, 1000)))
    assert(!SameFile(tagged(null, 1, 1000), tagged(null, 2, 1000)))
    assert(!SameFile(status(1, 1000), status(1, 1001)))
    assert(!SameFile(status(1, 1000), tagged("x", 2, 1000)))
  }
}
