package io.interlock.coordinator.postgres

import java.net.SocketTimeoutException
import java.sql.SQLException

class RefusalsSuite extends munit.FunSuite {
  for (
    (state, isFinal) <- Seq(
      "40001" -> true,
      "40P01" -> true,
      "40003" -> false,
      "25006" -> true,
      "55P03" -> true,
      "57014" -> true,
      "57P01" -> false,
      "08006" -> false
    )
  ) test(s"whether SQLSTATE $state says that a call changed nothing")(
    assertEquals(Refusals.isFinal(new SQLException("", state)), isFinal)
  )

  test("an error without a SQLSTATE does not")(assert(!Refusals.isFinal(new SQLException(""))))

  for (
    (state, isDisconnected) <- Seq(
      "08003" -> true,
      "08006" -> true,
      "57P01" -> true,
      "57P02" -> true,
      "57014" -> false,
      "40003" -> false
    )
  ) test(s"whether SQLSTATE $state says that a connection is of no more use")(
    assertEquals(Refusals.isDisconnected(new SQLException("", state)), isDisconnected)
  )

  for (
    parameter <- Seq("", " in options") // since 1.20 it looks at the options one by one
  ) test(s"a pooler that refuses a start-up parameter$parameter") {
    val refused = new SQLException(s"FATAL: unsupported startup parameter$parameter: x", "08P01")
    val help = ConnectionPool.help(refused.getSQLState, ConnectionPool.described(refused))
    assert(help.contains("and not PgBouncer"), help)
  }

  test("another error of the protocol has nothing to do with a pooler") {
    assert(!ConnectionPool.help("08P01", "Protocol error. Session setup failed.").contains("Pg"))
  }

  test("who has waited the longest for an answer does not ask again") {
    val silent = new SQLException("", "08006", new SocketTimeoutException)
    assert(!Refusals.isDisconnected(silent))
  }
}
