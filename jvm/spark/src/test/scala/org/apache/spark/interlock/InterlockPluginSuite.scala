package org.apache.spark.interlock

class InterlockPluginSuite extends munit.FunSuite {
  import InterlockPlugin._

  test("Delta's extension comes before Interlock's, whatever is configured") {
    val both = s"$DeltaExtension,$OurExtension"
    for (
      configured <- Seq("", OurExtension, DeltaExtension, both, s"$OurExtension, $DeltaExtension")
    )
      assertEquals(extensions(configured), both)
    assertEquals(extensions(s"a.B, $OurExtension"), s"a.B,$both")
    assertEquals(extensions(s"$both,a.B"), s"$DeltaExtension,a.B,$OurExtension")
  }
}
