package io.interlock.spark.audit

import io.interlock.spark.text.Json

/** The oldest job of a process that may still commit to a table.
  *
  * @param since
  *   when its transaction began, in milliseconds of its process's clock
  */
final case class RunningJob(since: Long, owner: String) {
  def toJson: String = Json.write(Map("since" -> since.toString, "owner" -> owner))
}

object RunningJob {

  /** None for another text. */
  def of(text: String): Option[RunningJob] =
    for {
      fields <- Json.readObject(text)
      since <- fields.get("since").flatMap(_.toString.toLongOption)
      owner <- fields.get("owner").map(_.toString)
    } yield RunningJob(since, owner)
}
