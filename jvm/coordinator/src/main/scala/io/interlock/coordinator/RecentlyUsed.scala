package io.interlock.coordinator

import java.util.{Collections, LinkedHashMap, Map => JMap}

/** Thread-safe maps of bounded size, for facts about tables: the least recently used entry is
  * dropped.
  */
private[coordinator] object RecentlyUsed {
  private val Most = 10000

  def map[K, V](most: Int = Most): JMap[K, V] =
    Collections.synchronizedMap(new LinkedHashMap[K, V](16, 0.75f, true) {
      override protected def removeEldestEntry(eldest: JMap.Entry[K, V]): Boolean = size > most
    })
}
