package org.apache.spark.interlock.metrics

import java.util.concurrent.TimeUnit

import com.codahale.metrics.{Counter, Gauge, Histogram, MetricRegistry}
import io.interlock.coordinator.CommitQueue
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
  *   - `phases.<phase>`: timers of the parts of a commit that was made, all its tries together
  *   - `commitMillis`, `judgeMillis`: histograms of a commit's time, and of that in judging and
  *     rebasing
  *   - `commitMemory`: gauge of the characters of commits that are kept for judging others
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

  private val commitMemory: Gauge[Long] = () => CommitQueue.charactersKept
  metricRegistry.register("commitMemory", commitMemory): Unit

  private var registeredWith: Option[MetricsSystem] = None

  /** Registers the source with the metrics of the running context, once for each context. */
  def register(): Unit = synchronized {
    Option(SparkEnv.get).map(_.metricsSystem).filterNot(registeredWith.contains).foreach { system =>
      system.registerSource(this)
      registeredWith = Some(system)
    }
  }

  /** @param phases
    *   the parts of its time, in nanoseconds
    */
  def committed(millis: Long, verdicts: Seq[String], phases: Seq[(String, Long)]): Unit = {
    commits.inc()
    commitMillis.update(millis)
    phases.foreach { case (phase, nanos) =>
      metricRegistry.timer(s"phases.$phase").update(nanos, TimeUnit.NANOSECONDS)
    }
    verdicts.foreach(verdict => metricRegistry.counter(s"rebases.$verdict").inc())
  }

  def rejected(rule: String): Unit =
    metricRegistry.counter(s"conflicts.${rule.replaceAll("[^A-Za-z0-9]+", "_")}").inc()
}
