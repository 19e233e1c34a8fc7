package io.interlock.coordinator

/** The oldest version of which a log still has a file. */
object OldestVersion {
  private val OfVersion = """\d{20}\..+""".r

  /** When its first file was written, in milliseconds since 1970; none if the log is empty. */
  def written(log: TableLog): Option[Long] = {
    val folder = LogFolder.of(log)
    folder.names().filter(OfVersion.matches).minOption.flatMap(folder.status)
      .map(_.getModificationTime)
  }
}
