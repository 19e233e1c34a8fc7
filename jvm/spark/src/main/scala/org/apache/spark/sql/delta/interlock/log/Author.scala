package org.apache.spark.sql.delta.interlock.log

import scala.util.matching.Regex

import io.interlock.spark.claims.{Claimant, Claims}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.ClassicConversions.castToImpl

/** The user, session and application that commit. On Spark Connect the session is the client's, and
  * so is the user if the client names one.
  */
final case class Author(user: String, session: String, application: String) {

  /** Who it is in claims. A session that was cloned for a stream claims as the original one. */
  def asClaimant(spark: SparkSession): Claimant =
    Claimant(spark.conf.get(Claims.SessionConf, session), s"$user in $application")
}

object Author {
  private val ConnectTag: Regex =
    "SparkConnect_OperationTag_User_(.*)_Session_(.*)_Operation_.*".r

  def of(spark: SparkSession): Author = {
    val context = spark.sparkContext
    val (user, session) = context.getJobTags()
      .collectFirst { case ConnectTag(user, session) =>
        Some(user).filter(_.nonEmpty).getOrElse(context.sparkUser) -> session
      }
      .getOrElse(context.sparkUser -> castToImpl(spark).sessionUUID)
    Author(user, session, context.applicationId)
  }
}
