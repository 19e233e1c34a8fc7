package org.apache.spark.sql.delta.interlock.block

import scala.util.Random

import org.apache.spark.sql.delta.actions._

/** The net effect of random statements, compared with a replay of them one after the other. */
class NetActionsSuite extends munit.FunSuite {
  private val highest = 100L

  /** The live files of a table, by path, each with its deletion vector's size; 0 for none. */
  private type Live = Map[String, Int]

  private val base: Live = Map("a" -> 0, "b" -> 0, "c" -> 3, "d" -> 1)

  private def add(path: String, dead: Int) = AddFile(
    path,
    Map.empty,
    size = 1,
    modificationTime = 0,
    dataChange = true,
    deletionVector = vector(dead),
    baseRowId = Some(if (base.contains(path)) 5 else highest + 1),
    defaultRowCommitVersion = Some(2)
  )

  private def remove(path: String, dead: Int) =
    RemoveFile(path, Some(0L), deletionVector = vector(dead))

  private def vector(dead: Int) = if (dead == 0) null
  else DeletionVectorDescriptor.inlineInLog(Array.fill(4)(dead.toByte), dead.toLong)

  private def deadOf(vector: DeletionVectorDescriptor) =
    Option(vector).fold(0)(_.cardinality.toInt)

  /** A statement that removes, extends and adds files. */
  private def statement(live: Live, number: Int, random: Random): Seq[Action] =
    live.toSeq.sorted.flatMap { case (path, dead) =>
      random.nextInt(4) match {
        case 0 => Seq(remove(path, dead))
        case 1 => Seq(remove(path, dead), add(path, dead + 1))
        case _ => Nil
      }
    } ++ Seq.tabulate(random.nextInt(3))(n => add(s"new-$number-$n", 0))

  private def replay(live: Live, actions: Seq[Action]): Live = {
    val gone = actions.collect { case file: RemoveFile =>
      assert(live.get(file.path).contains(deadOf(file.deletionVector)), file)
      file.path
    }
    (live -- gone) ++ actions.collect { case file: AddFile =>
      assert(!(live -- gone).contains(file.path), file)
      file.path -> deadOf(file.deletionVector)
    }
  }

  test("one commit leaves what the statements leave one after the other") {
    for (seed <- 1 to 2000) {
      val random = new Random(seed)
      val (live, net) = (1 to 6).foldLeft((base, NetActions())) { case ((live, net), number) =>
        val actions = statement(live, number, random)
        (replay(live, actions), net.after(actions))
      }
      val actions = net.actions(highest)
      assert(replay(base, actions) == live, s"seed $seed")
      val added = actions.collect { case file: AddFile => file }
      assert(added.filter(_.baseRowId.isEmpty).map(_.path).forall(_.startsWith("new")))
      assert(added.filter(_.path.startsWith("new")).forall(_.defaultRowCommitVersion.isEmpty))
    }
  }

  test("what is inserted and deleted again is no change") {
    val net = NetActions().after(Seq(add("x", 0))).after(Seq(remove("x", 0)))
    assert(net.isEmpty)
    assert(net.actions(highest) == Nil)
  }

  test("of each application the last batch counts, and the last metadata") {
    val net = NetActions()
      .after(Seq(SetTransaction("job", 1, None), Metadata(id = "1")))
      .after(Seq(SetTransaction("job", 2, None), Metadata(id = "2")))
    assert(net.actions(highest) == Seq(SetTransaction("job", 2, None)))
    assert(net.metadata.map(_.id).contains("2"))
  }
}
