package io.interlock.coordinator.postgres

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
}
