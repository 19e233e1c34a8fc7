package org.apache.spark.sql.delta.interlock.judging

import java.nio.file.Files

import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.interlock.DeltaSuite

class OptimizeBatchesSuite extends DeltaSuite {
  test("batches are those of one thread from one snapshot") {
    val table = Files.createTempDirectory("batches").resolve("t").toString
    spark.range(1).write.format("delta").save(table)
    val log = DeltaLog.forTable(spark, table)
    val first = log.update()
    OptimizeBatches.add(first, "a")
    OptimizeBatches.add(first, "b")
    assertEquals(OptimizeBatches.before(first), Set("a", "b"))
    var elsewhere = Set("?")
    val other = new Thread(() => elsewhere = OptimizeBatches.before(first))
    other.start()
    other.join()
    assertEquals(elsewhere, Set.empty[String])
    spark.range(1).write.format("delta").mode("append").save(table)
    val second = log.update()
    assertEquals(OptimizeBatches.before(second), Set.empty[String])
    OptimizeBatches.add(second, "c")
    assertEquals(OptimizeBatches.before(second), Set("c"))
    assertEquals(OptimizeBatches.before(first), Set.empty[String])
  }
}
