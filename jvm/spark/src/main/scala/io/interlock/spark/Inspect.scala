package io.interlock.spark

import java.nio.file.Path

import io.interlock.coordinator.LinkProbe

/** Checks of the machine, for the Python package. */
object Inspect {

  /** What is wrong with hard links in a folder of this machine; null if they work. */
  def linkFault(folder: String): String = LinkProbe.fault(Path.of(folder)).orNull
}
