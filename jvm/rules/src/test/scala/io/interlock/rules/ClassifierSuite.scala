package io.interlock.rules

import io.interlock.rules.OperationClass._

class ClassifierSuite extends munit.FunSuite {
  private val classifier = new Classifier(_.startsWith("p "), MergeSmallFiles)

  private def check(expected: OperationClass, name: String, parameters: (String, String)*): Unit =
    test(s"$name ${parameters.mkString(" ")} is $expected") {
      assertEquals(
        classifier.classify(OperationFacts(
          name,
          parameters.toMap,
          addsFiles = true,
          removesFiles = true,
          changesData = true
        )),
        expected
      )
    }

  check(Append, "WRITE", "mode" -> "Append")
  check(Append, "WRITE", "mode" -> "ErrorIfExists")
  check(Overwrite, "WRITE", "mode" -> "Overwrite")
  check(Overwrite, "WRITE", "mode" -> "Overwrite", "predicate" -> "p = 1")
  check(Mutate, "WRITE", "mode" -> "Overwrite", "predicate" -> "id = 1")
  check(Mutate, "WRITE", "mode" -> "Overwrite", "replaceUsingCols" -> "(id)")
  check(Mutate, "WRITE", "mode" -> "Overwrite", "replaceOnCond" -> "t.id = s.id")
  check(Mutate, "CREATE OR REPLACE TABLE AS SELECT", "predicate" -> "id = 1")
  check(Append, "STREAMING UPDATE", "outputMode" -> "Append")
  check(Overwrite, "STREAMING UPDATE", "outputMode" -> "Complete")
  Seq("UPDATE", "DELETE", "MERGE").foreach(check(Mutate, _))
  Seq(
    "TRUNCATE",
    "RESTORE",
    "CLONE",
    "CONVERT",
    "CREATE OR REPLACE TABLE AS SELECT",
    "REPLACE TABLE"
  )
    .foreach(check(Overwrite, _))
  Seq("OPTIMIZE", "REORG").foreach(check(MergeSmallFiles, _))
  Seq("ROW TRACKING BACKFILL", "COMPUTE STATS").foreach(check(Metadata, _))

  private def unknown(
      expected: OperationClass,
      adds: Boolean,
      removes: Boolean,
      changes: Boolean
  ): Unit =
    test(
      s"an unknown operation that adds $adds removes $removes changes data $changes is $expected"
    ) {
      val facts = OperationFacts("MYSTERY", Map.empty, adds, removes, changes)
      assertEquals(classifier.classify(facts), expected)
    }

  unknown(Metadata, adds = false, removes = false, changes = false)
  unknown(MergeSmallFiles, adds = true, removes = true, changes = false)
  unknown(Append, adds = true, removes = false, changes = true)
  unknown(Mutate, adds = true, removes = true, changes = true)

  test("an overwrite that only rearranges rows is a compaction") {
    val facts = OperationFacts("WRITE", Map("mode" -> "Overwrite"), true, true, changesData = false)
    assertEquals(classifier.classify(facts), MergeSmallFiles: OperationClass)
  }
}
