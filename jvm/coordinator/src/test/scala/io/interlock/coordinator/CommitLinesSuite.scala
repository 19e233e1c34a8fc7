package io.interlock.coordinator

class CommitLinesSuite extends munit.FunSuite {
  private val stamp = Stamp("filesystem", 0, 7)

  private def check(name: String, info: String, expected: String): Unit = test(name) {
    val rest = Seq("""{"add":{"path":"a b","size":1e3}}""", "not JSON at all")
    val lines = (s"""{"commitInfo":$info}""" +: rest).iterator
    val expectedLines = s"""{"commitInfo":$expected}""" +: rest
    assertEquals(CommitLines.stamped(lines, stamp).toSeq, expectedLines)
  }

  check(
    "tags are made",
    """{"b":1}""",
    """{"b":1,"tags":{"interlock.coordinator":"filesystem/0/7"}}"""
  )
  check(
    "other tags stay, keys keep their order",
    """{"z":1,"tags":{"y":"2","x":"3"},"a":null}""",
    """{"z":1,"tags":{"y":"2","x":"3","interlock.coordinator":"filesystem/0/7"},"a":null}"""
  )
  check(
    "an older stamp is replaced",
    """{"tags":{"interlock.coordinator":"x/1/1","a":"b"}}""",
    """{"tags":{"interlock.coordinator":"filesystem/0/7","a":"b"}}"""
  )
  check(
    "null tags are replaced",
    """{"tags":null}""",
    """{"tags":{"interlock.coordinator":"filesystem/0/7"}}"""
  )
  check(
    "numbers keep their digits, text its letters",
    """{"n":0.10000000000000000000001,"m":1.50,"l":123456789012345678901234567890,"t":"é\"\\\n<☃"}""",
    """{"n":0.10000000000000000000001,"m":1.50,"l":123456789012345678901234567890,""" +
      """"t":"é\"\\\n<☃","tags":{"interlock.coordinator":"filesystem/0/7"}}"""
  )

  Seq(Seq.empty, Seq("""{"add":{}}"""), Seq("["), Seq("""{"commitInfo":3}""")).foreach { lines =>
    test(s"a commit that starts with ${lines.headOption} cannot be stamped") {
      intercept[IllegalArgumentException](CommitLines.stamped(lines.iterator, stamp))
    }
  }

  test("the transaction's id and the stamp are read") {
    val line = """{"commitInfo":{"txnId":"t-1","tags":{"interlock.coordinator":"id-9/2/30"}}}"""
    assertEquals(CommitLines.txnIdOf(line), Some("t-1"))
    assertEquals(CommitLines.stampOf(line), Some(Stamp("id-9", 2, 30)))
  }

  Seq(
    "",
    "[1]",
    "{\"commitInfo\"",
    """{"add":{"txnId":"t"}}""",
    """{"commitInfo":{"txnId":5,"tags":{"interlock.coordinator":"a/b/c"}}}""",
    """{"commitInfo":{"txnId":null,"tags":{"interlock.coordinator":"a/1/-2"}}}""",
    """{"commitInfo":{"tags":{"interlock.coordinator":"a/1/9999999999999999999"}}}"""
  ).foreach { line =>
    test(s"no id and no stamp is in $line") {
      assertEquals(CommitLines.txnIdOf(line), None)
      assertEquals(CommitLines.stampOf(line), None)
    }
  }

  test("a stamp is read from its own text") {
    assertEquals(Stamp.parse(stamp.text), Some(stamp))
    assertEquals(stamp.text, "filesystem/0/7")
  }
}
