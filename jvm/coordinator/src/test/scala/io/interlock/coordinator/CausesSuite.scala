package io.interlock.coordinator

import java.io.{IOException, InterruptedIOException}
import java.net.SocketTimeoutException
import java.nio.channels.ClosedByInterruptException

class CausesSuite extends munit.FunSuite {

  /** As the class of that name in Apache's HTTP client, which S3A has as a cause. */
  private class ConnectTimeoutException extends InterruptedIOException

  test("a thread was interrupted, or a connection has timed out") {
    val interrupts = Seq(
      new InterruptedException,
      new InterruptedIOException("interrupted"),
      new ClosedByInterruptException,
      new RuntimeException(new IOException(new InterruptedIOException))
    )
    interrupts.foreach(failed => assert(Causes.areInterrupt(failed), failed))
    val others = Seq(
      new IOException("down"),
      new SocketTimeoutException("connect timed out"),
      new SocketTimeoutException("connect timed out").initCause(new ConnectTimeoutException),
      new ConnectTimeoutException
    )
    others.foreach(failed => assert(!Causes.areInterrupt(failed), failed))
  }
}
