package io.interlock.rules

import io.interlock.rules.OperationClass._

class ClassifierSuite extends munit.FunSuite {
  private val classifier = new Classifier(_.startsWith("p "), policy("maxcompute_transactional"))

  private def policy(name: String): Policy = Policies.byName(name).get

  private def facts(name: String, parameters: (String, String)*) = OperationFacts(
    name,
    parameters.toMap,
    addsFiles = true,
    removesFiles = true,
    changesData = true,
    removesAll = () => true,
    partitioned = true
  )

  private def check(expected: OperationClass, name: String, parameters: (String, String)*): Unit =
    test(s"$name ${parameters.mkString(" ")} is $expected") {
      assertEquals(classifier.classify(facts(name, parameters: _*)), expected)
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
  private val compactions =
    Seq("COMPACT MINOR", "COMPACT MAJOR", "MERGE SMALLFILES", "OPTIMIZE", "REORG")
  compactions.foreach(check(MergeSmallFiles, _))
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
      val found =
        facts("MYSTERY").copy(addsFiles = adds, removesFiles = removes, changesData = changes)
      assertEquals(classifier.classify(found), expected)
    }

  unknown(Metadata, adds = false, removes = false, changes = false)
  unknown(MergeSmallFiles, adds = true, removes = true, changes = false)
  unknown(Append, adds = true, removes = false, changes = true)
  unknown(Mutate, adds = true, removes = true, changes = true)

  test("only COMPACT MAJOR is of class COMPACT_MAJOR, where the policy has that class") {
    val delta = new Classifier(_ => false, policy("maxcompute_delta"))
    val majors = compactions.filter(name => delta.classify(facts(name)) == CompactMajor)
    assertEquals(majors, Seq("COMPACT MAJOR"))
    val minors = compactions.filter(name => delta.classify(facts(name)) == CompactMinor)
    assertEquals(minors, compactions.filter(_ != "COMPACT MAJOR"))
  }

  private val overwrite = facts("WRITE", "mode" -> "Overwrite")

  test("an overwrite that only rearranges rows is a compaction") {
    val found = overwrite.copy(changesData = false)
    assertEquals(classifier.classify(found), MergeSmallFiles: OperationClass)
  }

  test("a write without files is no compaction") {
    val empty = facts("WRITE", "mode" -> "Append")
      .copy(addsFiles = false, removesFiles = false, changesData = false)
    assertEquals(classifier.classify(empty), Append: OperationClass)
  }

  test("an overwrite that names no part and keeps files replaces rows that match") {
    assertEquals(
      classifier.classify(overwrite.copy(removesAll = () => false)),
      Mutate: OperationClass
    )
  }

  test("a dynamic overwrite keeps the files of other partitions") {
    val flag = "isDynamicPartitionOverwrite" -> "true"
    val dynamic = overwrite.copy(parameters = overwrite.parameters + flag, removesAll = () => false)
    assert(dynamic.replacesDynamically)
    assertEquals(classifier.classify(dynamic), Overwrite: OperationClass)
    assert(!dynamic.copy(partitioned = false).replacesDynamically)
    val replace = dynamic.copy(name = "CREATE OR REPLACE TABLE AS SELECT")
    assert(!replace.replacesDynamically)
    val saved = replace.parameters + ("isV1SaveAsTableOverwrite" -> "true")
    assert(replace.copy(parameters = saved).replacesDynamically)
  }
}
