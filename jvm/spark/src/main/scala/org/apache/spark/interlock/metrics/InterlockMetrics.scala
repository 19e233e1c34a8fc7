package org.apache.spark.interlock.metrics

import com.codahale.metrics.{Counter, Histogram, MetricRegistry}
import org.apache.spark.SparkEnv
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.metrics.source.Source

/** The source `interlock` of Spark's metrics: counts the commits under policies in this JVM, and
  * their conflicts.
  *
  *   - `commits`: versions made; `attempts`: tries to make one, `commits` included
  *   - `rebases.<verdict>`: winners that a commit passed
  *   - `conflicts.<rule>`: rejected commits by the policy's cell, or by the error's kind where Delta
  *     decides; what is no letter and no digit is an underscore
  *   - `commitMillis`, `judgeMillis`: histograms of a commit's time, and of that in judging and
  *     rebasing
  *
  * It is below `org.apache.spark` because Spark's `Source` is private to that package.
  */
object InterlockMetrics extends Source {
  override val sourceName: String = "interlock"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val commits = metricRegistry.counter("commits")
  val attempts: Counter = metricRegistry.counter("attempts")
  private val commitMillis = metricRegistry.histogram("commitMillis")
  val judgeMillis: Histogram = metricRegistry.histogram("judgeMillis")

  private var registeredWith: Option[MetricsSystem] = None

  /** Registers the source with the metrics of the running context, once for each context. */
  def register(): Unit = synchronized {
    Option(SparkEnv.get).map(_.metricsSystem).filterNot(registeredWith.contains).foreach { system =>
      system.registerSource(this)
      registeredWith = Some(system)
    }
  }

  /** @param verdicts
    *   the verdicts by which the commit passed winners
    */
  def committed(millis: Long, verdicts: Seq[String]): Unit = {
    commits.inc()
    commitMillis.update(millis)
    verdicts.foreach(verdict => metricRegistry.counter(s"rebases.$verdict").inc())
  }

  /** @param rule
    *   the policy's cell, or the kind of the error
    */
  def rejected(rule: String): Unit =
    metricRegistry.counter(s"conflicts.${rule.replaceAll("[^A-Za-z0-9]+", "_")}").inc()
}
