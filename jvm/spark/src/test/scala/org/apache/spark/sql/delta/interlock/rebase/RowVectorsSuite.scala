package org.apache.spark.sql.delta.interlock.rebase

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{Files, Path => LocalPath}

import io.interlock.rules.rebase.RowSet
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.interlock.DeltaSuite

class RowVectorsSuite extends DeltaSuite {
  private val LongestPath = 4096

  /** Java says of a file in it, whose path is too long, that it is not found. */
  private def deepFolder: LocalPath = {
    val short = Files.createTempDirectory("deep")
    val names = LongestPath - 40 - short.toString.length
    val parts = Seq.fill(names / 200)("x" * 199) :+ "x" * (names % 200).max(1)
    Files.createDirectories(parts.foldLeft(short)(_.resolve(_)))
  }

  test("a vector that cannot be written does not count as one that is gone") {
    val log = DeltaLog.forTable(spark, new Path(deepFolder.toUri))
    val error = intercept[IOException](new RowVectors(log, _ => ()).write(Seq(RowSet.of(0))))
    assert(error.getCause.isInstanceOf[FileNotFoundException], error)
    assert(!error.isInstanceOf[FileNotFoundException], error)
  }
}
