package io.interlock.rules

import scala.util.Try

/** The names of a conflict's facts: in the parameters of its error and in the JSON of its record.
  * Columns of SQL and attributes of Python have the same ones in snake case.
  */
object ConflictFacts {

  /** Text, whole numbers and lists of text; unknown facts are left out. */
  def of(conflict: Conflict): Map[String, Any] = {
    import conflict._
    Map[String, Option[Any]](
      "kind" -> Some(kind.name),
      "policy" -> Some(policy),
      "operation" -> Some(operation),
      "operationClass" -> Some(operationClass.name),
      "readVersion" -> Some(readVersion),
      "table" -> Some(table),
      "txnId" -> Some(txnId),
      "winnerVersion" -> winner.map(_.version),
      "winnerOperation" -> winner.flatMap(_.operation),
      "winnerClass" -> winnerClass.map(_.name),
      "winnerTxnId" -> winner.flatMap(_.txnId),
      "winnerUser" -> winner.flatMap(_.user),
      "why" -> Some(why),
      "rule" -> rule,
      "verdict" -> verdict.map(_.name),
      "ruling" -> ruling,
      "scope" -> scope,
      "files" -> Some(overlap.files).filter(_.nonEmpty),
      "rows" -> Some(overlap.rows).filter(_.nonEmpty),
      "sourceRows" -> Some(overlap.sourceRows).filter(_.nonEmpty),
      "predicate" -> overlap.predicate,
      "undecided" -> Option.when(overlap.undecided)(true),
      "phase" -> phase
    ).collect { case (name, Some(fact)) => name -> fact }
  }

  /** The conflict of such facts; None if one that every conflict has is not there. */
  def read(facts: Map[String, Any]): Option[Conflict] = Try {
    def needed(name: String) = facts(name).toString
    def known(name: String) = facts.get(name).map(_.toString)
    def several(name: String) = facts.get(name).toSeq.collect { case all: Iterable[_] => all }
      .flatten.map(_.toString)
    Conflict(
      ConflictKind.byName(needed("kind")),
      needed("policy"),
      needed("operation"),
      OperationClass.byName(needed("operationClass")).get,
      needed("readVersion").toLong,
      needed("table"),
      needed("txnId"),
      known("winnerVersion").map(version =>
        WinningCommit(
          version.toLong,
          known("winnerOperation"),
          known("winnerClass").flatMap(OperationClass.byName),
          known("winnerTxnId"),
          known("winnerUser")
        )
      ),
      needed("why"),
      known("rule"),
      known("verdict").flatMap(Verdict.byName),
      known("ruling"),
      known("scope"),
      Overlap(
        several("files"),
        several("rows"),
        several("sourceRows"),
        known("predicate"),
        facts.contains("undecided")
      ),
      known("phase").nonEmpty
    )
  }.toOption
}
