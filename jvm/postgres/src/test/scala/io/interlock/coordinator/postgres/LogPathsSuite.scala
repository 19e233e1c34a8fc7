package io.interlock.coordinator.postgres

import io.interlock.coordinator.{CoordinatorException, TableLog}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

class LogPathsSuite extends munit.FunSuite {
  private def check(path: Path): Unit = LogPaths.check(TableLog(path, new Configuration()))

  private val good = Seq(
    "file:/data/t/_delta_log",
    "file:/data/it's \"odd\"; DROP TABLE x--/_delta_log",
    "file:/data/p=%3F/_delta_log",
    "s3a://bucket/t/_delta_log",
    "abfss://container@account.example/t/_delta_log"
  )

  private val bad = Seq(
    "/data/t/_delta_log" -> "not fully qualified",
    "file:/data/t" -> "no folder _delta_log",
    "file:/data/%2e%2e/t/_delta_log" -> ". or ..",
    "file:/data/%2E/t/_delta_log" -> ". or ..",
    "file:/data/.%2e/t/_delta_log" -> ". or ..",
    "file:/data/a\u0000b/_delta_log" -> "control characters",
    "file:/data/a\nb/_delta_log" -> "control characters",
    s"file:/${"a" * 2000}/_delta_log" -> "longer than",
    "s3a://key:hunter2@bucket/t/_delta_log" -> "password"
  )

  private val keys = Seq(
    "hdfs://name:8020/data/t/_delta_log" -> "hdfs://name/data/t/_delta_log",
    "hdfs://name/data/t/_delta_log" -> "hdfs://name/data/t/_delta_log",
    "hdfs://name:9000/data/t/_delta_log" -> "hdfs://name:9000/data/t/_delta_log",
    "hdfs://name:8020/data/a b%20c/_delta_log" -> "hdfs://name/data/a b%20c/_delta_log",
    "s3a://bucket/t/_delta_log" -> "s3a://bucket/t/_delta_log"
  )

  keys.foreach { case (path, key) =>
    test(s"the key of $path") {
      val log = TableLog(new Path(path), new Configuration())
      assertEquals(LogPaths.resolved(log).path, new Path(key))
    }
  }

  good.foreach(path => test(s"taken: $path")(check(new Path(path))))

  bad.foreach { case (path, problem) =>
    test(s"refused: ${path.take(60)}") {
      val e = intercept[CoordinatorException](check(new Path(path)))
      assert(e.parameters("problem").contains(problem), e.getMessage)
      assert(!e.getMessage.exists(_.isControl))
    }
  }
}
