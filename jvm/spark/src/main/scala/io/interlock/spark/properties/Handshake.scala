package io.interlock.spark.properties

import java.util.Properties

import scala.util.{Try, Using}

import io.interlock.spark.errors.InterlockException
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.internal.SQLConf

/** Checks once per session that the versions of Spark, Delta, this jar and the Python wheel fit
  * together.
  */
object Handshake {

  /** Set by `interlock.configure` to the version of the wheel. */
  val WheelVersionConf = "spark.interlock.version"

  private lazy val build: Properties = {
    val properties = new Properties()
    Using.resource(getClass.getResourceAsStream("/io/interlock/version.properties"))(
      properties.load
    )
    properties
  }

  private def jarVersion: String = build.getProperty("version")

  /** @throws InterlockException
    *   INTERLOCK_VERSION_MISMATCH, with one sentence that says what to install
    */
  def check(): Unit = {
    val spark = build.getProperty("spark")
    if (!SPARK_VERSION.startsWith(s"$spark."))
      throw InterlockException.versionMismatch(s"Spark $SPARK_VERSION", s"pyspark $spark")
    if (Try(Class.forName("org.apache.spark.sql.delta.DeltaLog")).isFailure) {
      val delta = build.getProperty("delta")
      throw InterlockException.versionMismatch(
        "no Delta jar",
        s"io.delta:delta-spark_${spark}_2.13:$delta"
      )
    }
    wheelVersion.filter(_ != jarVersion).foreach { wheel =>
      throw InterlockException.versionMismatch(
        s"the Python package spark-interlock $wheel beside this jar of version $jarVersion",
        s"spark-interlock==$jarVersion, or use the jar that the package brings"
      )
    }
  }

  private def wheelVersion: Option[String] =
    Option(SQLConf.get.getConfString(WheelVersionConf, null))
      .orElse(Option(org.apache.spark.SparkEnv.get).flatMap(_.conf.getOption(WheelVersionConf)))
}
