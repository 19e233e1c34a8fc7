package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException

/** Values of settings and properties that are positive whole numbers. */
private[properties] object PositiveNumber {

  /** @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def parse(key: String, text: String): Int = text.trim.toIntOption.filter(_ > 0)
    .getOrElse(throw InterlockException.invalidProperty(key, text, "a positive number"))
}
