package io.interlock.links

import scala.util.Using

/** Prints what the class path lacks of what Interlock uses of Spark and Delta, a line each. */
object CheckLinks extends App {
  Using.resource(new Classes(getClass.getClassLoader))(Links.ofJar().missing).foreach(println)
}
