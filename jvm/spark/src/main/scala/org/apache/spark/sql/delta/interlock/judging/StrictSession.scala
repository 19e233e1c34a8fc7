package org.apache.spark.sql.delta.interlock.judging

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.{SparkSession, classic}

private[interlock] object StrictSession {

  /** A session like the user's in which a file that cannot be read does not count as empty. */
  def of(users: SparkSession): classic.SparkSession = {
    val own = castToImpl(users).cloneSession()
    own.conf.set("spark.sql.files.ignoreMissingFiles", "false")
    own.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    own
  }
}
