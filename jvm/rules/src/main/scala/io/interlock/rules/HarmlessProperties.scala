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

  /** The properties after two changes of the same properties; none if one of the two does more than
    * change harmless ones, or if they give a key different values.
    */
  def merged(
      base: Map[String, String],
      one: Map[String, String],
      other: Map[String, String]
  ): Option[Map[String, String]] = {
    def changed(to: Map[String, String]) =
      (base.keySet ++ to.keySet).filter(key => base.get(key) != to.get(key))
    val (byOne, byOther) = (changed(one), changed(other))
    val agree = byOne.intersect(byOther).forall(key => one.get(key) == other.get(key))
    Option.when(agree && (byOne ++ byOther).forall(contain))(
      one -- byOther ++ other.view.filterKeys(byOther)
    )
  }
}
