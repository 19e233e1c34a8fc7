package io.interlock.spark.commits

import io.interlock.rules.OperationClass
import io.interlock.spark.text.Json

/** The oldest job of a process that may still commit to a table.
  *
  * @param since
  *   when its transaction began, in milliseconds of its process's clock
  * @param owner
  *   its user and application
  * @param changes
  *   the jobs of the process for which compactions make way
  */
final case class RunningJob(since: Long, owner: String, changes: Seq[RunningChange] = Nil) {
  def toJson: String = Json.write(
    Map[String, Any]("since" -> since.toString, "owner" -> owner) ++
      Option.when(changes.nonEmpty)("changes" -> changes.map(_.toMap))
  )
}

/** A job for which compactions make way.
  *
  * @param classes
  *   the classes that it may have
  * @param files
  *   the files that it has read or will remove, by their paths in the log; none if it may be any
  */
final case class RunningChange(
    since: Long,
    owner: String,
    classes: Set[OperationClass],
    files: Option[Set[String]]
) {
  def reads(file: String): Boolean = files.forall(_(file))

  private[commits] def toMap: Map[String, Any] = Map[String, Any](
    "since" -> since.toString,
    "classes" -> classes.map(_.name)
  ) ++ files.filter(_.size <= RunningChange.MostNoted).map("files" -> _)
}

object RunningJob {

  /** None for another text. */
  def of(text: String): Option[RunningJob] =
    for {
      fields <- Json.readObject(text)
      since <- fields.get("since").flatMap(_.toString.toLongOption)
      owner <- fields.get("owner").map(_.toString)
    } yield RunningJob(
      since,
      owner,
      RunningChange.texts(fields.get("changes"), identity).collect { case change: Map[_, _] =>
        RunningChange.of(owner, change.map { case (key, value) => key.toString -> value })
      }
    )
}

object RunningChange {

  /** The note of a job that reads more files does not name them. */
  private val MostNoted = 1000

  private[commits] def of(owner: String, fields: Map[String, Any]): RunningChange = RunningChange(
    fields.get("since").flatMap(_.toString.toLongOption).getOrElse(0L),
    owner,
    texts(fields.get("classes"), _.toString).flatMap(OperationClass.byName).toSet,
    fields.get("files").map(files => texts(Some(files), _.toString).toSet)
  )

  private[commits] def texts[A](several: Option[Any], as: Any => A): Seq[A] =
    several.toSeq.flatMap { case all: Iterable[_] => all.map(as); case _ => Nil }
}
