package io.interlock.spark.text

import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/** JSON text of Scala maps, sequences and numbers. */
private[spark] object Json {
  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)

  def write(value: Any): String = mapper.writeValueAsString(value)

  /** The members of an object; none if the text is not a JSON object. */
  def readObject(text: String): Option[Map[String, Any]] =
    Try(mapper.readValue(text, classOf[Map[String, Any]])).toOption.filter(_ != null)
}
