package io.interlock.spark

import java.nio.file.Path

import io.interlock.coordinator.LinkProbe
import io.interlock.rules.Policy

/** What Interlock knows about itself and the machine: for the Python package and the lab. */
object Inspect {
  def version(): String = Handshake.jarVersion

  /** An array of policies: name, source, classes in the order of rows and columns, the class of
    * compactions, and the cells row by row.
    */
  def policiesJson(): String = Json.write(SessionPolicies.all.map(describe))

  /** What is wrong with hard links in a folder of this machine, null if nothing. */
  def linkFault(folder: String): String = LinkProbe.fault(Path.of(folder)).orNull

  private def describe(policy: Policy): Map[String, Any] = Map(
    "name" -> policy.name,
    "source" -> policy.source,
    "classes" -> policy.classes.map(_.name),
    "compaction" -> policy.compaction.name,
    "isolation" -> policy.isolation,
    "cells" -> policy.cells.map(cell =>
      Map(
        "id" -> cell.id,
        "earlier" -> cell.earlier.name,
        "later" -> cell.later.name,
        "verdict" -> cell.verdict.name
      )
    )
  )
}
