package io.interlock.rules

/** A part of a table's metadata that a statement can change alone.
  *
  * @param text
  *   what it is, to follow "changed"
  */
sealed abstract class MetadataPart(val text: String)

object MetadataPart {
  case object TableComment extends MetadataPart("the table's comment")

  /** A column or nested field, by the names on the way to it. */
  final case class Column(path: Seq[String]) extends MetadataPart(s"the column ${named(path)}")

  final case class ColumnComment(path: Seq[String])
      extends MetadataPart(s"the comment of the column ${named(path)}")

  final case class Property(key: String) extends MetadataPart(s"the property $key")

  /** All else, which no ALTER TABLE changes. */
  case object Definition extends MetadataPart("the table's partitioning, format or id")

  private def named(path: Seq[String]) = path.mkString(".")
}
