package io.interlock.spark.claims

import org.apache.spark.SparkContext

/** The threads of streaming queries. */
object StreamThread {
  // The value of StreamExecution.QUERY_ID_KEY, which has moved to another package in Spark 4.1.
  private val QueryId = "sql.streaming.queryId"

  def isCurrent(context: SparkContext): Boolean = context.getLocalProperty(QueryId) != null
}
