package io.interlock.rules

/** Finds the known name that a misspelt name is nearest to. */
object NearestName {

  /** The candidate with the smallest edit distance to `name`. */
  def of(name: String, candidates: Seq[String]): String =
    candidates.minBy(distance(name, _))

  /** The number of letters to add, leave out or replace (Levenshtein distance), ignoring case. */
  def distance(a: String, b: String): Int = ofLowerCase(a.toLowerCase, b.toLowerCase)

  private def ofLowerCase(a: String, b: String): Int =
    a.foldLeft((0 to b.length).toVector) { (above, c) =>
      b.indices.scanLeft(above.head + 1) { (left, j) =>
        val replaced = above(j) + (if (b(j) == c) 0 else 1)
        math.min(math.min(left, above(j + 1)) + 1, replaced)
      }.toVector
    }.last
}
