package io.interlock.rules

/** A commit that a job lost against or passed, as the log shows it. Unknown facts are None.
  *
  * @param operation
  *   as the table's history calls it
  */
final case class WinningCommit(
    version: Long,
    operation: Option[String] = None,
    operationClass: Option[OperationClass] = None,
    txnId: Option[String] = None,
    user: Option[String] = None
) {

  /** As "version 6 (UPDATE by ann)". */
  override def toString: String = {
    val made = operation.toSeq ++ user.map("by " + _)
    s"version $version" + (if (made.isEmpty) "" else made.mkString(" (", " ", ")"))
  }

  /** As "version 6 (UPDATE, MUTATE)". */
  def withClass: String =
    (operation.getOrElse("unknown") +: operationClass.map(_.name).toSeq)
      .mkString(s"version $version (", ", ", ")")
}
