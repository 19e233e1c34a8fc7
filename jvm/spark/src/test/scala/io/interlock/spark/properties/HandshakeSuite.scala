package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException

class HandshakeSuite extends munit.FunSuite {
  private def refused(parts: String*)(check: => Unit): Unit = {
    val error = intercept[InterlockException](check)
    assertEquals(error.getCondition, "INTERLOCK_VERSION_MISMATCH")
    parts.foreach(part => assert(error.getMessage.contains(part), error.getMessage))
  }

  test("what this build is made for passes") {
    Handshake.check()
  }

  test("without Delta, and with one that lacks something, it says what to install") {
    refused("no Delta jar:", ":4.4.0")(Handshake.checkDelta(None, Nil))
    val missing = (1 to 7).map(n => s"class C$n is not there")
    refused("Delta 4.3.1 and Spark", "class C5 is not there; and 2 more)", ":4.4.0")(
      Handshake.checkDelta(Some("4.3.1"), missing)
    )
    Handshake.checkDelta(Some("4.4.7"), Nil)
  }

  test("on another Spark the jar for it is named, if there is one") {
    val other = if (org.apache.spark.SPARK_VERSION.startsWith("4.0.")) "4.1" else "4.0"
    refused(s"Spark $other.1", s"interlock-spark_${other}_2.13")(Handshake.checkSpark(s"$other.1"))
    val error = intercept[InterlockException](Handshake.checkSpark("5.0.0"))
    assert(!error.getMessage.contains("interlock-spark_"), error.getMessage)
  }
}
