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

  private def load(name: String): Policy = {
    val resource = s"policies/$name.policy"
    PolicyText.parse(resource, Resource.text(resource), Some(name))
  }
}
