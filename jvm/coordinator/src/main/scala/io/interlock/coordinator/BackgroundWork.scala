package io.interlock.coordinator

import java.util.concurrent.{
  Callable,
  ConcurrentHashMap,
  ExecutorService,
  Executors,
  ScheduledFuture,
  ScheduledThreadPoolExecutor,
  ThreadFactory,
  TimeUnit
}

import scala.concurrent.duration.FiniteDuration
import scala.jdk.CollectionConverters._

import org.slf4j.LoggerFactory

/** Work on files of many tables, on daemon threads that are made as they are needed. A storage that
  * does not answer can hold a call for hours, so no task waits for another one.
  *
  * All methods are thread-safe. What the work throws is logged, and stops nothing else.
  *
  * @param name
  *   what the threads are called
  */
final class BackgroundWork(name: String) {
  private val logger = LoggerFactory.getLogger(getClass)
  private val underWay = ConcurrentHashMap.newKeySet[AnyRef]()
  private val daemons: ThreadFactory = { work =>
    val thread = new Thread(work, name)
    thread.setDaemon(true)
    thread
  }
  private val threads: ExecutorService = Executors.newCachedThreadPool(daemons)
  private val clock = {
    val clock = new ScheduledThreadPoolExecutor(1, daemons)
    clock.setRemoveOnCancelPolicy(true)
    clock
  }

  /** Calls `work` again and again, with a pause between the calls. It must not touch files, but may
    * [[start]] tasks that do.
    */
  def every(pause: FiniteDuration)(work: => Unit): Unit = {
    val millis = pause.toMillis
    clock.scheduleWithFixedDelay(() => logged(work), millis, millis, TimeUnit.MILLISECONDS): Unit
  }

  /** Runs a task after some time, unless it is cancelled before. */
  def after(delay: FiniteDuration)(task: => Unit): ScheduledFuture[_] =
    clock.schedule(
      (() => threads.execute(() => logged(task))): Runnable,
      delay.toMillis,
      TimeUnit.MILLISECONDS
    )

  /** Runs a task, unless the last one that was started with an equal key is still under way. */
  def start(key: AnyRef)(task: => Unit): Unit = if (underWay.add(key)) {
    val last: Runnable = () =>
      try logged(task)
      finally underWay.remove(key): Unit
    try threads.execute(last)
    catch {
      case noThread: Throwable =>
        underWay.remove(key)
        logger.warn(s"A task of $name was not started", noThread)
    }
  }

  /** Runs tasks at once and waits until they have ended, at most for `most`; then it interrupts
    * them.
    */
  def runAll(most: FiniteDuration)(tasks: Iterable[() => Unit]): Unit = {
    val calls: Iterable[Callable[Unit]] = tasks.map(task => () => logged(task()))
    threads.invokeAll(calls.toSeq.asJava, most.toMillis, TimeUnit.MILLISECONDS): Unit
  }

  private def logged(work: => Unit): Unit =
    try work
    catch { case failed: Throwable => logger.warn(s"A task of $name failed", failed) }
}
