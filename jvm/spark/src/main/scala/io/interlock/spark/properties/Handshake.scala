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
    checkSpark(SPARK_VERSION)
    checkDelta(deltaFound)
    wheelVersion.filter(_ != jarVersion).foreach { wheel =>
      throw InterlockException.versionMismatch(
        s"the Python package spark-interlock $wheel beside this jar of version $jarVersion",
        s"spark-interlock==$jarVersion, or use the jar that the package brings"
      )
    }
  }

  private[properties] def checkSpark(running: String): Unit = {
    val spark = build.getProperty("spark")
    val minor = running.split('.').take(2).mkString(".")
    if (minor != spark) {
      val jar = Option.when(build.getProperty("sparks").split(' ').contains(minor))(
        s", or the jar for this Spark, interlock-spark_${minor}_2.13"
      )
      throw InterlockException.versionMismatch(
        s"Spark $running and the jar for Spark $spark",
        s"pyspark $spark${jar.mkString}"
      )
    }
  }

  /** @param found
    *   `Delta` and its version, or what is there instead
    */
  private[properties] def checkDelta(found: String): Unit = {
    val delta = build.getProperty("delta")
    if (found != s"Delta $delta")
      throw InterlockException.versionMismatch(
        found,
        s"io.delta:delta-spark_${build.getProperty("spark")}_2.13:$delta"
      )
  }

  /** Asked by name, as Delta may be missing or another one. */
  private def deltaFound: String =
    if (Try(Class.forName("org.apache.spark.sql.delta.DeltaLog")).isFailure) "no Delta jar"
    else
      Try(Class.forName("io.delta.package").getMethod("VERSION").invoke(null))
        .fold(_ => "a Delta that does not tell its version", version => s"Delta $version")

  private def wheelVersion: Option[String] =
    Option(SQLConf.get.getConfString(WheelVersionConf, null))
      .orElse(Option(org.apache.spark.SparkEnv.get).flatMap(_.conf.getOption(WheelVersionConf)))
}
