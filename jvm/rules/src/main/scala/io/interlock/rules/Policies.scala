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

  /** What a policy lets happen, as a clause to follow its name.
    *
    * @param verdict
    *   the name of the verdict of the cell of the two jobs
    */
  def lets(name: String, verdict: Option[String]): String =
    clause(name, verdict.flatMap(Verdict.byName))

  private def clause(name: String, verdict: Option[Verdict]): String = (name, verdict) match {
    case ("row_level" | "row_serializable", Some(Verdict.ByFiles)) =>
      "compares compactions and overwrites with other jobs file by file"
    case ("row_level" | "row_serializable", Some(moved)) if Verdict.needRowsFollowed(moved) =>
      IfFollowed
    case _ => ofAll.getOrElse(name, byVerdict(verdict))
  }

  private val IfFollowed = "lets both commit if the rows that were moved can be followed"

  private val ofAll = Map(
    "maxcompute_delta" ->
      ("lets overwrites replace what was committed before them and most compactions pass other " +
        "jobs; of two other jobs on one partition the later one fails"),
    "maxcompute_transactional" ->
      ("lets INSERTs and overwrites always commit; UPDATE, DELETE, MERGE and compactions fail " +
        "after any commit to the same partition"),
    "maxcompute_standard" ->
      ("lets INSERTs and overwrites always commit; compactions fail after any commit to the same " +
        "partition"),
    "serializable" ->
      ("lets two jobs commit unless the later one has read or rewrites what the earlier one " +
        "changed, file by file"),
    "write_serializable" ->
      ("lets two jobs commit unless the later one has read or rewrites what the earlier one " +
        "changed, file by file; rows of an INSERT that reads nothing do not count"),
    "row_level" ->
      ("lets two jobs commit unless they change the same rows, or the later one reads rows that " +
        "the earlier one changed"),
    "row_serializable" ->
      ("lets two jobs commit unless they change the same rows, or the later one reads rows that " +
        "the earlier one changed or added")
  )

  /** For a policy of the user's own. */
  private def byVerdict(verdict: Option[Verdict]): String = verdict match {
    case Some(Verdict.AsIs | Verdict.ReplaceLive) => "lets both commit"
    case Some(overlap) if Verdict.ifTheyOverlap(overlap) => "lets both commit unless they overlap"
    case Some(moved) if Verdict.needRowsFollowed(moved) => IfFollowed
    case _ => "does not let both commit"
  }

  private def load(name: String): Policy = {
    val resource = s"policies/$name.policy"
    PolicyText.parse(resource, Resource.text(resource), Some(name))
  }
}
