package org.apache.spark.sql.delta.interlock.table

import scala.util.Try

import io.interlock.spark.properties.Exclusive.Feature
import org.apache.spark.sql.delta.actions.{Action, Protocol}

/** The table feature of an exclusive table.
  *
  * Delta's protocol obliges every writer to refuse a table whose `writerFeatures` name a feature that
  * the writer does not know. Readers do not look at them.
  */
object ExclusiveFeature {

  /** Lets the Delta of this JVM write tables with the feature; further calls do nothing. All
    * transactions of the JVM are Interlock's, see [[TransactionHook]].
    *
    * What Delta supports is one protocol without features, to which it adds all that it knows at
    * each check. The feature is put into that one.
    *
    * @throws IllegalStateException
    *   if Delta still refuses the feature, for example in another Delta release
    */
  def install(): Unit = installed

  private lazy val installed: Unit = {
    val supported = Action.supportedProtocolVersion(withAllFeatures = false)
    Try {
      val features = classOf[Protocol].getDeclaredField("writerFeatures")
      features.setAccessible(true)
      features.set(supported, Some(supported.writerFeatureNames + Feature))
    }
    if (!Protocol(1, 7).withWriterFeatures(Seq(Feature)).supportedForWrite())
      throw new IllegalStateException(
        s"Interlock cannot add the table feature $Feature to this Delta release. " +
          "Use delta-spark 4.4.0."
      )
  }

  /** The protocol with the feature if the table is exclusive, and without it if not. An exclusive
    * table has a policy, hence row tracking, and so its protocol lists writer features.
    */
  def of(protocol: Protocol, isExclusive: Boolean): Protocol =
    if (protocol.writerFeatureNames.contains(Feature) == isExclusive) protocol
    else if (isExclusive) protocol.withWriterFeatures(Seq(Feature))
    else protocol.copy(writerFeatures = protocol.writerFeatures.map(_ - Feature))
}
