package io.interlock.coordinator

class InterruptSuite extends munit.FunSuite {

  test("an interrupt is not seen by the work, and is there again after it, also if it fails") {
    Thread.currentThread().interrupt()
    assert(!Interrupt.setAside(Thread.currentThread().isInterrupted))
    val failed = intercept[IllegalStateException](Interrupt.setAside[Unit] {
      assert(!Thread.currentThread().isInterrupted)
      throw new IllegalStateException
    })
    assert(Thread.interrupted(), failed)
  }

  test("without an interrupt there is none afterwards") {
    assertEquals(Interrupt.setAside(1), 1)
    assert(!Thread.currentThread().isInterrupted)
  }
}
