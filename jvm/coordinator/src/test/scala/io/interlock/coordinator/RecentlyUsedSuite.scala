package io.interlock.coordinator

import scala.jdk.CollectionConverters._

class RecentlyUsedSuite extends munit.FunSuite {
  test("what was asked for longest ago gives place") {
    val map = RecentlyUsed.map[Int, String](most = 3)
    (1 to 3).foreach(number => map.put(number, "first"))
    assertEquals(map.get(1), "first")
    map.merge(4, "new", (_, _) => fail("4 is new"))
    assertEquals(map.keySet.asScala.toSet, Set(1, 3, 4))
  }
}
