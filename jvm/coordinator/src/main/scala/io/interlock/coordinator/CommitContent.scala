package io.interlock.coordinator

/** The bytes of one commit, ready to become `N.json`. */
sealed trait CommitContent {
  def size: Long
  def sha256: Array[Byte]
}

/** A small commit, held in memory. */
final case class InMemory(bytes: Array[Byte], sha256: Array[Byte]) extends CommitContent {
  override def size: Long = bytes.length.toLong
}

/** A commit that is completely and durably written to a file in `_delta_log`.
  *
  * @param name
  *   the file's name, without its folder
  */
final case class StagedFile(name: String, size: Long, sha256: Array[Byte]) extends CommitContent
