package io.interlock.rules

/** The policies that come with Interlock, each read from its text resource. */
object Policies {
  val names: Seq[String] = Seq(
    "maxcompute_delta",
    "maxcompute_transactional",
    "maxcompute_standard",
    "serializable",
    "write_serializable",
    "row_level",
    "row_serializable"
  )

  lazy val all: Seq[Policy] = names.map(load)

  def byName(name: String): Option[Policy] = all.find(_.name == name)

  /** What a policy lets happen, as a clause to follow its name. */
  def lets(name: String): String = name match {
    case "maxcompute_delta" =>
      "lets overwrites replace what was committed before them and most compactions pass other " +
        "jobs; of two other jobs on one partition the later one fails"
    case "maxcompute_transactional" =>
      "lets INSERTs and overwrites always commit; UPDATE, DELETE, MERGE and compactions fail after " +
        "any commit to the same partition"
    case "maxcompute_standard" =>
      "lets INSERTs and overwrites always commit; compactions fail after any commit to the same " +
        "partition"
    case "serializable" =>
      "lets two jobs commit unless the later one has read or rewrites what the earlier one changed, " +
        "file by file"
    case "write_serializable" =>
      "lets two jobs commit unless the later one has read or rewrites what the earlier one changed, " +
        "file by file; rows of an INSERT that reads nothing do not count"
    case "row_level" =>
      "lets two jobs commit unless they change the same rows, or the later one reads rows that the " +
        "earlier one changed"
    case "row_serializable" =>
      "lets two jobs commit unless they change the same rows, or the later one reads rows that the " +
        "earlier one changed or added"
    case _ => "does not let both commit"
  }

  private def load(name: String): Policy = {
    val resource = s"policies/$name.policy"
    PolicyText.parse(resource, Resource.text(resource), Some(name))
  }
}
