package org.apache.spark.interlock.ui

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import scala.xml.Node

import jakarta.servlet.http.HttpServletRequest
import org.apache.spark.interlock.ui.VerdictsTable._
import org.apache.spark.ui.{PagedDataSource, PagedTable, UIUtils}

// Pages of Spark are XML literals, which escape what is put into them.
// scalafix:off DisableSyntax.noXml

/** Verdicts, by pages and sorted by a column as the request says; below each its explanation.
  *
  * @param path
  *   of the page, to which parameters are appended
  * @throws IllegalArgumentException
  *   where the request names a column that is none, or a number that is none
  */
final private[ui] class VerdictsTable(
    request: HttpServletRequest,
    path: String,
    verdicts: Seq[StoredVerdict]
) extends PagedTable[StoredVerdict] {
  private val (sortColumn, isDescending, pageSize) =
    getTableParameters(request, Tag, defaultSortColumn = columns.head.title)
  private val titles = columns.map(column => (column.title, true, Option.empty[String]))
  isSortColumnValid(titles, sortColumn)

  override val tableId: String = s"$Tag-table"
  override val tableCssClass: String = UIUtils.TABLE_CLASS_NOT_STRIPED
  override val pageSizeFormField: String = s"$Tag.pageSize"
  override val pageNumberFormField: String = s"$Tag.page"

  override val dataSource: PagedDataSource[StoredVerdict] =
    new PagedDataSource[StoredVerdict](pageSize) {
      private val sorted = {
        val order = columns.find(_.title == sortColumn).get.order
        verdicts.sorted(if (isDescending) order.reverse else order)
      }
      override def dataSize: Int = sorted.size
      override def sliceData(from: Int, to: Int): Seq[StoredVerdict] = sorted.slice(from, to)
    }

  private val sortedPath =
    s"$path&$Tag.sort=${URLEncoder.encode(sortColumn, UTF_8)}&$Tag.desc=$isDescending"

  override def goButtonFormPath: String = s"$sortedPath#$Tag"

  override def pageLink(page: Int): String =
    s"$sortedPath&$pageNumberFormField=$page&$pageSizeFormField=$pageSize#$Tag"

  override def headers: Seq[Node] =
    headerRow(titles, isDescending, pageSize, sortColumn, path, Tag, Tag)

  override def row(verdict: StoredVerdict): Seq[Node] = {
    val lines = verdict.commit.explanation.linesIterator.toSeq
    <tr>{columns.map(column => <td>{column.text(verdict.commit)}</td>)}</tr>
    <tr><td colspan={columns.size.toString} class="text-break"><details>
      <summary>{lines.headOption.getOrElse("")}</summary>
      <ul class="list-unstyled ms-3 mb-0">{lines.drop(1).map(line => <li>{line}</li>)}</ul>
    </details></td></tr>
  }
}

private object VerdictsTable {

  /** The table's parameters begin with it. */
  val Tag = "verdicts"
  private val MostListed = 5

  /** @param number
    *   by which it is sorted, before its text
    */
  final class Column(
      val title: String,
      val text: SparkListenerInterlockCommit => String,
      number: StoredVerdict => Long = _ => 0
  ) {
    val order: Ordering[StoredVerdict] = Ordering.by(row => (number(row), text(row.commit)))
  }

  val columns: Seq[Column] = Seq(
    new Column("Time", commit => UIUtils.formatDate(commit.time), _.number),
    new Column("Table", _.table),
    new Column("Operation", _.operation),
    new Column("Class", _.operationClass),
    new Column("Outcome", _.outcome),
    new Column(
      "Rules",
      commit => listed((commit.rules :+ commit.kind).filter(_.nonEmpty).distinct)
    ),
    new Column(
      "Winners",
      commit => listed(commit.winners.map(_.toString)),
      _.commit.winners.headOption.getOrElse(-1)
    ),
    new Column("Scope", _.scope)
  )

  private def listed(all: Seq[String]): String =
    if (all.size <= MostListed) all.mkString(", ")
    else s"${all.head} ... ${all.last} (${all.size})"
}
