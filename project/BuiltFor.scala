/** One minor version of Spark.
  *
  * @param patch
  *   the patch that its jar is compiled against
  * @param newest
  *   the patch that the tests run on
  * @param hadoop
  *   the version that `patch` brings, as are `jackson` and `roaringBitmap`
  */
case class BuiltFor(
    minor: String,
    patch: String,
    newest: String,
    hadoop: String,
    jackson: String,
    roaringBitmap: String
)

object BuiltFor {
  val all = Seq(
    BuiltFor("4.0", "4.0.1", "4.0.5", "3.4.1", "2.18.2", "1.3.0"),
    BuiltFor("4.1", "4.1.0", "4.1.4", "3.4.2", "2.20.0", "1.3.0"),
    BuiltFor("4.2", "4.2.0", "4.2.1", "3.5.0", "2.21.2", "1.6.10")
  )

  /** The one that `-Dspark=4.1` names; the newest if nothing is named. */
  val spark: BuiltFor = sys.props.get("spark").fold(all.last) { minor =>
    all
      .find(_.minor == minor)
      .getOrElse(sys.error(s"-Dspark=$minor is none of ${all.map(_.minor).mkString(", ")}"))
  }
}
