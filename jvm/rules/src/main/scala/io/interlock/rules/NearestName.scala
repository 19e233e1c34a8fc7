package io.interlock.rules

/** Finds the name that a mistyped one was meant to be. */
object NearestName {

  /** The candidate with the smallest edit distance to `name`. */
  def of(name: String, candidates: Seq[String]): String =
    candidates.minBy(distance(name, _))

  /** How many letters to add, leave out or replace, whatever their case. */
  def distance(a: String, b: String): Int = ofLowerCase(a.toLowerCase, b.toLowerCase)

  private def ofLowerCase(a: String, b: String): Int =
    a.foldLeft((0 to b.length).toVector) { (above, c) =>
      b.indices.scanLeft(above.head + 1) { (left, j) =>
        val replaced = above(j) + (if (b(j) == c) 0 else 1)
        math.min(math.min(left, above(j + 1)) + 1, replaced)
      }.toVector
    }.last
}
