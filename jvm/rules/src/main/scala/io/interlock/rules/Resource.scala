package io.interlock.rules

import scala.io.Source
import scala.util.Using

private[rules] object Resource {

  /** The text of a resource in `/io/interlock`. */
  def text(name: String): String =
    Using.resource(getClass.getResourceAsStream(s"/io/interlock/$name"))(
      Source.fromInputStream(_, "UTF-8").mkString
    )
}
