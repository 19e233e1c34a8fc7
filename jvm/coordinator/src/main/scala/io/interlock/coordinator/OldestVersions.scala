package io.interlock.coordinator

/** The oldest versions of a log, up to the first checkpoint of a later one than the first. Delta
  * deletes all of them at once.
  */
object OldestVersions {
  private val OfVersion = """\d{20}\.(json|crc|checkpoint\..+)""".r

  /** When the last of their files was written, in milliseconds since 1970; none if there is no such
    * checkpoint.
    */
  def lastWritten(log: TableLog): Option[Long] = {
    val folder = LogFolder.of(log)
    val names = folder.names().filter(OfVersion.matches).sorted
    val end = names.indexWhere(name =>
      name.contains(".checkpoint.") && name.take(20) != names.head.take(20)
    )
    Option.when(end > 0)(names(end - 1)).flatMap(folder.status).map(_.getModificationTime)
  }
}
