package io.interlock.spark.properties

import java.util.Properties

import scala.util.{Try, Using}

import io.interlock.links.{Classes, Links}
import io.interlock.spark.errors.InterlockException
import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.internal.SQLConf

/** Checks once per session that Spark, Delta, this jar and the Python wheel fit together: Spark by
  * its minor version, the wheel by its version, and Delta by what this jar uses of it (see
  * [[Links]]).
  */
object Handshake extends Logging {

  /** Set by `interlock.configure` to the version of the wheel. */
  val WheelVersionConf = "spark.interlock.version"

  /** How many of the things that are missing an error names. */
  private val MostNamed = 5

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
    checkDelta(deltaFound, missing)
    wheelVersion.filter(_ != jarVersion).foreach { wheel =>
      throw InterlockException.versionMismatch(
        s"the Python package spark-interlock $wheel beside this jar of version $jarVersion",
        s"spark-interlock==$jarVersion, or use the jar that the package brings"
      )
    }
    noteUntested
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
    *   Delta's version, or none
    * @param missing
    *   what Spark and Delta lack of what this jar uses
    */
  private[properties] def checkDelta(found: Option[String], missing: => Seq[String]): Unit = {
    val install = s"io.delta:delta-spark_${build.getProperty("spark")}_2.13:$testedDelta"
    val delta = found.getOrElse(throw InterlockException.versionMismatch("no Delta jar", install))
    if (missing.nonEmpty) {
      val more = missing.size - MostNamed
      val named = missing.take(MostNamed) ++ Option.when(more > 0)(s"and $more more")
      throw InterlockException.versionMismatch(
        s"Delta $delta and Spark $SPARK_VERSION, which lack what it uses (${named.mkString("; ")})",
        install
      )
    }
  }

  /** Classes are not loaded twice, so one look is enough for all sessions of a JVM. */
  private lazy val missing: Seq[String] =
    Using.resource(new Classes(getClass.getClassLoader))(Links.ofJar().missing)

  private def testedDelta: String = build.getProperty("delta")

  private lazy val noteUntested: Unit = deltaFound.filter(_ != testedDelta).foreach(delta =>
    logWarning(
      s"Delta $delta has all that Interlock uses, but Interlock was tested with $testedDelta only."
    )
  )

  /** Asked by name, as Delta may be missing or another one. */
  private def deltaFound: Option[String] =
    Try(Class.forName("org.apache.spark.sql.delta.DeltaLog")).toOption.map(_ =>
      Try(Class.forName("io.delta.package").getMethod("VERSION").invoke(null))
        .fold(_ => "of unknown version", _.toString)
    )

  private def wheelVersion: Option[String] =
    Option(SQLConf.get.getConfString(WheelVersionConf, null))
      .orElse(Option(org.apache.spark.SparkEnv.get).flatMap(_.conf.getOption(WheelVersionConf)))
}
