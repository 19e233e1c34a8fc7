package io.interlock.coordinator

import java.io.IOException
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

class QuickLocalFileSystemSuite extends munit.FunSuite {
  test("a file is made in a folder that is there, and brings no other back") {
    val conf = new Configuration()
    QuickLocalFileSystem.use(conf)
    val folder = Files.createTempDirectory("quick")
    val dropped = folder.resolve("dropped")
    val fs = new Path(folder.toString).getFileSystem(conf)
    intercept[IOException](fs.create(new Path(dropped.toString, "a")).close())
    assert(Files.notExists(dropped))
    val made = new Path(folder.toString, "a")
    fs.create(made).close()
    assert(fs.getFileStatus(made).isFile)
    fs.delete(new Path(folder.toString), true)
  }
}
