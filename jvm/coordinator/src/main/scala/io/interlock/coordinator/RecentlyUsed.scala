package io.interlock.coordinator

import java.util.{Collections, LinkedHashMap, Map => JMap}

/** Maps of what a process knows of tables, for many threads, which never outgrow their use: the
  * entry that was asked for longest ago gives place.
  */
private[coordinator] object RecentlyUsed {
  private val Most = 10000

  def map[K, V](most: Int = Most): JMap[K, V] =
    Collections.synchronizedMap(new LinkedHashMap[K, V](16, 0.75f, true) {
      override protected def removeEldestEntry(eldest: JMap.Entry[K, V]): Boolean = size > most
    })
}
