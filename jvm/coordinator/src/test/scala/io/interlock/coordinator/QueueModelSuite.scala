package io.interlock.coordinator

import scala.collection.mutable
import scala.concurrent.duration._

import io.interlock.coordinator.QueueModel._

/** Every order in which the steps of a few transactions can happen, over the state that the queue of
  * production has.
  */
class QueueModelSuite extends munit.FunSuite {
  override val munitTimeout: Duration = 3.minutes

  /** Walks all states, depth first, without recursion.
    *
    * @return
    *   how many states there are, and in how many orders the steps lead from the beginning to an end
    *   without going round in circles
    * @throws java.lang.AssertionError
    *   with the steps that led to a violation, or to an end at which somebody still waits
    */
  private def walk(setting: Setting): (Int, BigInt) = {
    final class Frame(val key: Any, val by: String, var left: List[(String, State)]) {
      var schedules: BigInt = 0
    }
    val schedules = mutable.HashMap.empty[Any, BigInt]
    val path = mutable.Stack.empty[Frame]
    def story(last: String) = (path.map(_.by).toSeq.reverse :+ last).mkString("\n  ")
    def enter(by: String, state: State): Unit = {
      val next =
        try steps(setting, state).toList
        catch { case e: Violation => throw new AssertionError(s"${e.getMessage}:\n  ${story(by)}") }
      if (next.isEmpty && !state.txns.forall(_.phase.isInstanceOf[Done]))
        throw new AssertionError(s"Somebody waits for ever:\n  ${story(by)}")
      val at = key(setting, state)
      schedules.put(at, 0)
      val frame = new Frame(at, by, next)
      if (next.isEmpty) frame.schedules = 1
      path.push(frame): Unit
    }
    enter("start", start(setting))
    while (path.nonEmpty) {
      val frame = path.top
      frame.left match {
        case (by, state) :: rest =>
          frame.left = rest
          schedules.get(key(setting, state)) match {
            case Some(known) => frame.schedules += known
            case None => enter(by, state)
          }
        case Nil =>
          schedules.put(frame.key, frame.schedules)
          path.pop(): Unit
          path.headOption.foreach(_.schedules += frame.schedules)
      }
    }
    (schedules.size, schedules(key(setting, start(setting))))
  }

  private def check(name: String, setting: Setting): Unit = test(name) {
    val (states, schedules) = walk(setting)
    println(s"$name: $schedules schedules over $states states")
    assert(schedules > 1000)
  }

  check("three in one process", Setting(Vector(0, 0, 0)))
  check("two in one process, one in another", Setting(Vector(0, 0, 1)))

  check("one of three goes alone", Setting(Vector(0, 0, 0), alone = Set(2)))
  check("a queue lets go of what it remembers", Setting(Vector(0, 0), drops = 2))
  check("a queue starts over", Setting(Vector(0, 0), startsOver = 1))

  test("a queue that looks at the generation before it hands in publishes what was misjudged") {
    val found = intercept[AssertionError](
      walk(Setting(Vector(0, 0), faults = 0, handsInAtOnce = false))
    )
    assert(found.getMessage.contains("published on"), found.getMessage)
  }

  test("a transaction that goes on behind a withdrawn commit is published on what took its place") {
    val found = intercept[AssertionError](
      walk(Setting(Vector(0, 0), foreign = 2, faults = 0, startsAgain = false))
    )
    assert(found.getMessage.contains("published on"), found.getMessage)
  }

  test(
    "a transaction that starts again from what was on its way is sent behind a gap"
  ) {
    val found = intercept[AssertionError](
      walk(Setting(Vector(0, 0), foreign = 1, faults = 1, keepsSettledOnly = false))
    )
    assert(found.getMessage.contains("sent behind a gap"), found.getMessage)
  }
}
