package io.interlock.coordinator

/** A refusal with a reason: nothing was committed.
  *
  * @param condition
  *   its name in Interlock's error catalogue
  * @param parameters
  *   the values for the placeholders of its message; never a secret
  */
final class CoordinatorException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends RuntimeException(
      parameters.map { case (key, value) => s"$key=$value" }.mkString(s"$condition: ", ", ", ""),
      cause
    )
