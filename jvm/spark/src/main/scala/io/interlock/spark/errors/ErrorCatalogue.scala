package io.interlock.spark.errors

import org.apache.spark.ErrorClassesJsonReader

/** Interlock's error conditions: `io/interlock/error-conditions.json`. */
private[errors] object ErrorCatalogue {
  private lazy val reader = new ErrorClassesJsonReader(
    Seq(getClass.getResource("/io/interlock/error-conditions.json"))
  )

  /** The text of an error: `[CONDITION] what happened. Why. How to fix it.`
    *
    * @param parameters
    *   the parameters of the text; others are allowed (Spark itself refuses them when it runs its
    *   own tests)
    */
  def message(condition: String, parameters: Map[String, String]): String = {
    val named = parameters.view.filterKeys(reader.getMessageParameters(condition).toSet).toMap
    s"[$condition] ${reader.getErrorMessage(condition, named)} SQLSTATE: ${sqlState(condition)}"
  }

  def sqlState(condition: String): String = reader.getSqlState(condition)
}
