// Loaded for a release only, so that a set-up does not fetch it.
addSbtPlugin("com.github.sbt" % "sbt-sbom" % "0.5.0")
