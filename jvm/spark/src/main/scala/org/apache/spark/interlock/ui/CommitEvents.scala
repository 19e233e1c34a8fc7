package org.apache.spark.interlock.ui

import scala.util.control.NonFatal

import io.interlock.spark.audit.ConflictRecord
import org.apache.spark.SparkContext
import org.apache.spark.interlock.ui.{SparkListenerInterlockCommit => Event}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Tells the listeners of Spark's bus what became of commits under policies. */
object CommitEvents extends Logging {

  /** An event has so many characters of a text. */
  private val MostChars = 10000

  /** Whether anyone shows the events: the UI, or the History Server later. */
  def areShown(context: SparkContext): Boolean =
    context.ui.nonEmpty || context.isEventLogEnabled

  /** Posts an event where it is shown. One that cannot be made is a warning and no error.
    *
    * @param record
    *   a commit that was made may have passed nobody
    */
  def post(context: SparkContext, table: String, record: => Option[ConflictRecord])(
      explain: ConflictRecord => String
  ): Unit =
    if (areShown(context))
      try record.foreach(known => context.listenerBus.post(event(table, known, explain)))
      catch {
        case NonFatal(error) => logWarning(s"A commit to $table is not shown in the UI.", error)
      }

  private def event(table: String, record: ConflictRecord, explain: ConflictRecord => String) = {
    val outcome =
      if (record.conflict.nonEmpty) Event.Rejected
      else if (record.winners.isEmpty) Event.Committed
      else Event.Rebased
    val kind = record.conflict.filter(_.rule.isEmpty).map(_.kind.name)
    def known(fact: Option[String]): String = shown(fact.getOrElse(""))
    Event(
      record.time.toEpochMilli,
      record.txnId,
      shown(table),
      known(record.text("operation")),
      known(record.text("operationClass")),
      known(record.text("policy")),
      outcome,
      record.text("version").map(_.toLong),
      record.winners.map(_.version),
      record.winners.map(winner => known(winner.rule)),
      record.winners.map(winner => known(winner.verdict)),
      known(kind),
      known(record.text("scope")),
      if (outcome == Event.Committed) "" else shown(explain(record))
    )
  }

  /** As much of a text as is kept, without what `spark.sql.redaction.string.regex` hides. */
  private def shown(text: String): String = {
    val open = Utils.redact(SQLConf.get.stringRedactionPattern, text)
    if (open.length <= MostChars) open
    else {
      val splitsPair = open(MostChars - 1).isHighSurrogate
      open.take(if (splitsPair) MostChars - 1 else MostChars) + " ..."
    }
  }
}
