package io.interlock.spark.history

import java.sql.Timestamp

import scala.collection.mutable

import io.interlock.spark.commits.{CommitTags, Operations}
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.interlock.commit.Siblings
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.types._

/** The atomic blocks of a table, from its log. A block that also changes other tables may have
  * reserved its version several times; it is one row.
  */
private[spark] object BlockHistory {
  val schema: StructType = new StructType()
    .add("block", StringType, nullable = false)
    .add("version", LongType, nullable = false)
    .add("timestamp", TimestampType)
    .add("state", StringType, nullable = false)
    .add("statements", ArrayType(StringType, containsNull = false))
    .add("others", MapType(StringType, LongType, valueContainsNull = false))

  /** Newest first, by [[schema]]. */
  def of(snapshot: Snapshot): Iterator[Row] = {
    val log = new CommitLog(snapshot)
    val known = mutable.Set.empty[String]
    for {
      (version, info) <- log.infosNewestFirst()
      id <- info.tags.flatMap(_.get(CommitTags.BlockId)) if known.add(id)
    } yield {
      val isMade = !CommitTags.reserves(Some(info))
      val isLast = version == snapshot.version
      val state = if (isMade) "committed" else if (isLast) "undecided" else "rolled back"
      val others = Siblings.in(log.readWithoutFiles(version).toSeq.flatMap(_.numbered))
      Row(
        id,
        version,
        log.timestamp(version, Some(info)).map(new Timestamp(_)).orNull,
        state,
        if (isMade) statements(info) else null,
        others
      )
    }
  }

  /** A block of one statement has committed as that statement. */
  private def statements(info: CommitInfo): Seq[String] =
    Operations.unquoted(info.operationParameters).get("statements")
      .fold(Operations.name(info).toSeq)(_.split(", ").toSeq)
}
