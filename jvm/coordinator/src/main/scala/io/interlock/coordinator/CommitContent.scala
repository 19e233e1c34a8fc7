package io.interlock.coordinator

/** The bytes of one commit, ready to become `N.json`. */
sealed trait CommitContent {
  def size: Long
  def sha256: Array[Byte]
}

/** A small commit. */
final case class InMemory(bytes: Array[Byte], sha256: Array[Byte]) extends CommitContent {
  override def size: Long = bytes.length.toLong
}

/** A commit that is complete and durable in a file of `_delta_log`.
  *
  * @param name
  *   of the file, without its folder
  */
final case class StagedFile(name: String, size: Long, sha256: Array[Byte]) extends CommitContent
