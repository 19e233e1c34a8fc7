package io.interlock.rules.rebase

/** Rows `start until start + rows` of the rank space of `source` (its rows without those of
  * `vector`, counted from 0) are rows `target until target + rows` of the output.
  */
final case class Segment(source: String, vector: String, start: Long, rows: Long, target: Long)
