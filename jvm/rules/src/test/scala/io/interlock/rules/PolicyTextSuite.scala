package io.interlock.rules

class PolicyTextSuite extends munit.FunSuite {
  private val good =
    """|policy     p
       |source     somewhere
       |cells      X
       |compaction COMPACT_MINOR
       |# a comment
       || earlier \ later | OVERWRITE    | APPEND |
       || OVERWRITE       | REPLACE_LIVE | FAIL   |
       || APPEND          | AS_IS        | AS_IS  |
       |""".stripMargin

  private def rejects(name: String, from: String, to: String, message: String): Unit =
    test(name) {
      val error = intercept[MalformedPolicy](PolicyText.parse("p.policy", good.replace(from, to)))
      assert(error.getMessage.contains(message), error.getMessage)
    }

  test("reads a matrix row by row, earlier before later") {
    val policy = PolicyText.parse("p.policy", good)
    assertEquals(
      policy.cells.map(c => (c.id, c.earlier.name, c.later.name, c.verdict.name)),
      Seq(
        ("X1", "OVERWRITE", "OVERWRITE", "REPLACE_LIVE"),
        ("X2", "OVERWRITE", "APPEND", "FAIL"),
        ("X3", "APPEND", "OVERWRITE", "AS_IS"),
        ("X4", "APPEND", "APPEND", "AS_IS")
      )
    )
    assertEquals(policy.isolation, "Serializable")
  }

  rejects("an unknown verdict", "FAIL  ", "FIAL  ", "line 7: cell OVERWRITE -> APPEND: 'FIAL'")
  rejects("an unknown class", "| APPEND |", "| APEND |", "line 6: 'APEND' is no operation class")
  rejects("a class twice", "| APPEND |", "| OVERWRITE |", "line 6: names a class twice")
  rejects(
    "a row out of order",
    "| APPEND          |",
    "| MUTATE          |",
    "line 8: must be the row of APPEND"
  )
  rejects("a short row", "| REPLACE_LIVE | FAIL   |", "| REPLACE_LIVE |", "line 7: has 1 cells")
  rejects(
    "a missing row",
    "| APPEND          | AS_IS        | AS_IS  |",
    "",
    "2 columns but 1 rows"
  )
  rejects("a missing line", "compaction COMPACT_MINOR", "", "has no line 'compaction'")
  rejects("an unknown key", "cells ", "sells ", "line 3: is no '<key> <value>'")
}
