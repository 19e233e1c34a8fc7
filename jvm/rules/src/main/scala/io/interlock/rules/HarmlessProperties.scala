package io.interlock.rules

/** Table properties that change nothing for a job under way: those of users, and those of Delta and
  * Interlock that the resource `harmless-properties.txt` lists.
  */
object HarmlessProperties {
  private val Reserved = Seq("delta.", "interlock.", "option.", "spark.")

  private val (prefixes, names) = {
    val lines = Resource.text("harmless-properties.txt").linesIterator.map(_.trim)
    val (families, single) = lines.filterNot(_.startsWith("#")).toSeq.partition(_.endsWith("*"))
    (families.map(_.stripSuffix("*")), single.toSet)
  }

  def contain(key: String): Boolean =
    names(key) || prefixes.exists(key.startsWith) || !Reserved.exists(key.startsWith)
}
