package org.apache.spark.interlock.ui

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest
import org.apache.spark.status.KVUtils
import org.apache.spark.ui.{SparkUITab, UIUtils, WebUIPage}
import org.apache.spark.util.kvstore.KVStore

// Pages of Spark are XML literals, which escape what is put into them.
// scalafix:off DisableSyntax.noXml

/** How many commits were made and rejected, and the verdicts, newest first. */
final private[ui] class VerdictsPage(tab: SparkUITab, store: KVStore) extends WebUIPage("") {
  import VerdictsPage._

  override def render(request: HttpServletRequest): Seq[Node] = {
    val counts = KVUtils.viewToSeq(store.view(classOf[CommitCounts])).headOption
      .getOrElse(new CommitCounts(0, 0, 0))
    val verdicts = KVUtils.viewToSeq(store.view(classOf[StoredVerdict]).reverse())
    val onlySome =
      if (verdicts.size < counts.verdicts) s", only showing ${verdicts.size}" else ""
    val content =
      <div>
        <ul class="list-unstyled">
          <li><strong>Commits under a policy:</strong> {counts.made}</li>
          <li><strong>Rebased over other commits:</strong> {counts.rebased}</li>
          <li><strong>Rejected:</strong> {counts.rejected}</li>
        </ul>
        <h4>Verdicts ({counts.verdicts}{onlySome})</h4>
        {if (verdicts.isEmpty) "No commit was rebased or rejected." else table(verdicts)}
      </div>
    UIUtils.headerSparkPage(request, "Interlock", content, tab)
  }

  private def table(verdicts: Seq[StoredVerdict]): Seq[Node] =
    <table class={UIUtils.TABLE_CLASS_NOT_STRIPED}>
      <thead><tr>{columns.map { case (title, _) => <th>{title}</th> }}</tr></thead>
      <tbody>{verdicts.map(verdict => rows(verdict.commit))}</tbody>
    </table>

  /** A row of facts, and below it the explanation. */
  private def rows(commit: SparkListenerInterlockCommit): Seq[Node] = {
    val lines = commit.explanation.linesIterator.toSeq
    <tr>{columns.map { case (_, text) => <td>{text(commit)}</td> }}</tr>
    <tr><td colspan={columns.size.toString} class="text-break"><details>
      <summary>{lines.headOption.getOrElse("")}</summary>
      <ul class="list-unstyled ms-3 mb-0">{lines.drop(1).map(line => <li>{line}</li>)}</ul>
    </details></td></tr>
  }
}

private object VerdictsPage {
  private val MostListed = 5

  private val columns = Seq[(String, SparkListenerInterlockCommit => String)](
    "Time" -> (commit => UIUtils.formatDate(commit.time)),
    "Table" -> (_.table),
    "Operation" -> (_.operation),
    "Class" -> (_.operationClass),
    "Outcome" -> (_.outcome),
    "Rules" -> (commit => listed((commit.rules :+ commit.kind).filter(_.nonEmpty).distinct)),
    "Winners" -> (commit => listed(commit.winners.map(_.toString))),
    "Scope" -> (_.scope)
  )

  private def listed(all: Seq[String]): String =
    if (all.size <= MostListed) all.mkString(", ")
    else s"${all.head} ... ${all.last} (${all.size})"
}
