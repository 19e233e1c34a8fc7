package io.interlock.coordinator

import java.net.URI

import scala.collection.concurrent.TrieMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{DelegateToFileSystem, FileSystem, Path, RawLocalFileSystem}

/** A local disk that Hadoop and Delta reach by the scheme `other`. */
object OtherScheme {
  private[coordinator] val renames = TrieMap.empty[Path, (() => Boolean) => Boolean]

  def log(log: TableLog): TableLog = {
    val conf = new Configuration(false)
    conf.set("fs.other.impl", classOf[OtherFileSystem].getName)
    conf.setBoolean("fs.other.impl.disable.cache", true)
    conf.set("fs.AbstractFileSystem.other.impl", classOf[OtherFs].getName)
    TableLog(new Path("other", "", log.path.toUri.getPath), conf)
  }

  /** Has `rename` done, or not done, by `fault` while `body` runs, where a file of the log is made.
    */
  def renaming[A](log: TableLog)(fault: (() => Boolean) => Boolean)(body: => A): A = {
    renames += log.path -> fault
    try body
    finally renames -= log.path
  }
}

class OtherFileSystem extends RawLocalFileSystem {
  override def getUri: URI = URI.create("other:///")
  override def getScheme: String = "other"
  override def rename(source: Path, target: Path): Boolean = {
    def done = super.rename(source, target)
    OtherScheme.renames.get(target.getParent).fold(done)(fault => fault(() => done))
  }
}

class OtherFs(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, OtherFs.fileSystem(conf), conf, "other", false) {
  override def getUriDefaultPort: Int = -1
}

object OtherFs {
  private def fileSystem(conf: Configuration): FileSystem = {
    val fs = new OtherFileSystem
    fs.initialize(fs.getUri, conf)
    fs
  }
}
