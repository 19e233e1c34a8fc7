package org.apache.spark.interlock.ui

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest
import org.apache.spark.status.KVUtils
import org.apache.spark.ui.{SparkUITab, UIUtils, WebUIPage}
import org.apache.spark.util.kvstore.KVStore

// Pages of Spark are XML literals, which escape what is put into them.
// scalafix:off DisableSyntax.noXml

/** How many commits were made and rejected, and the verdicts. */
final private[ui] class VerdictsPage(tab: SparkUITab, store: KVStore) extends WebUIPage("") {

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
        <h4 id={VerdictsTable.Tag}>Verdicts ({counts.verdicts}{onlySome})</h4>
        {if (verdicts.isEmpty) "No commit was rebased or rejected." else table(request, verdicts)}
      </div>
    UIUtils.headerSparkPage(request, "Interlock", content, tab)
  }

  private def table(request: HttpServletRequest, verdicts: Seq[StoredVerdict]): Seq[Node] = {
    val path = UIUtils.prependBaseUri(request, tab.basePath) + s"/${tab.prefix}/?"
    val page = Option(request.getParameter(s"${VerdictsTable.Tag}.page")).flatMap(_.toIntOption)
    try
      <div class="table-responsive">
        {new VerdictsTable(request, path, verdicts).table(page.getOrElse(1))}
      </div>
    catch {
      case wrong: IllegalArgumentException =>
        <div class="alert alert-danger">{wrong.getMessage}</div>
    }
  }
}
