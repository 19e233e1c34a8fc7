import scala.util.matching.Regex
import scala.xml.transform.{RewriteRule, RuleTransformer}
import scala.xml.{Elem, Node, NodeSeq}

val builtFor = BuiltFor.spark // -Dspark=4.1
val deltaVersion = "4.4.0"
val postgresVersion = "42.7.10"

/** A value that a file of the Python package writes once, in a line `name = "value"`. */
def written(name: String, file: File): String = {
  val line: Regex = s"""$name\\s*=\\s*"([^"]+)"\\s*""".r
  IO.readLines(file)
    .collectFirst { case line(value) => value }
    .getOrElse(sys.error(s"$file has no line that begins with: $name ="))
}

val pyproject = file("pyproject.toml")
val source = written("Source", pyproject)

ThisBuild / organization := written("MAVEN_GROUP", file("python/interlock/_artifacts.py"))
ThisBuild / organizationName := "Interlock"
ThisBuild / version := written("version", pyproject)
ThisBuild / versionScheme := Some("early-semver")
ThisBuild / scalaVersion := "2.13.17"
ThisBuild / licenses := Seq(
  "Apache-2.0" -> url("https://www.apache.org/licenses/LICENSE-2.0")
)
ThisBuild / homepage := Some(url(source))
ThisBuild / scmInfo := Some(ScmInfo(url(source), s"scm:git:$source.git"))
ThisBuild / developers := List(
  Developer("interlock", "The developers of Interlock", "", url(source))
)
// `tools/release` lays the release out there, and `sonaUpload` takes it from there.
ThisBuild / publishTo := localStaging.value
Global / stagingDirectory := (ThisBuild / baseDirectory).value / "release" / "maven"
Global / onChangedBuildSource := IgnoreSourceChanges

ThisBuild / scalacOptions ++= Seq(
  "-encoding",
  "utf8",
  "-release:17",
  "-deprecation",
  "-feature",
  "-unchecked",
  "-Xlint",
  "-Wdead-code",
  "-Wnumeric-widen",
  "-Wvalue-discard",
  "-Wunused",
  "-Werror",
  // What Spark and Delta deprecate stays the only way in until they offer another.
  "-Wconf:cat=deprecation&origin=(org\\.apache\\.spark|io\\.delta)\\..*:s"
)
ThisBuild / javacOptions ++= Seq("--release", "17", "-Xlint:all", "-Werror")

val munit = "org.scalameta" %% "munit" % "1.2.1" % Test
val munitScalacheck = "org.scalameta" %% "munit-scalacheck" % "1.2.0" % Test
val hadoop = "org.apache.hadoop" % "hadoop-client-api" % builtFor.hadoop % Provided
val roaringBitmap =
  "org.roaringbitmap" % "RoaringBitmap" % builtFor.roaringBitmap % Provided // Spark's own

lazy val root = project
  .in(file("."))
  .aggregate(rules, coordinator, postgres, links, spark)
  .settings(name := "interlock", publish / skip := true)

lazy val rules = project
  .in(file("jvm/rules"))
  .settings(
    name := "interlock-rules",
    moduleName := "interlock-rules",
    libraryDependencies ++= Seq(roaringBitmap, munit, munitScalacheck),
    publish / skip := true
  )

lazy val coordinator = project
  .in(file("jvm/coordinator"))
  .settings(
    name := "interlock-coordinator",
    moduleName := "interlock-coordinator",
    libraryDependencies ++= Seq(
      hadoop,
      "org.apache.hadoop" % "hadoop-client-runtime" % builtFor.hadoop % Test,
      "io.delta" % "delta-storage" % deltaVersion % Provided,
      "com.fasterxml.jackson.core" % "jackson-databind" % builtFor.jackson % Provided, // Spark's own
      "org.slf4j" % "slf4j-api" % "2.0.17" % Provided, // Spark's own
      munit
    ),
    Test / parallelExecution := false, // CommitPhases has one observer in a JVM
    Test / fork := true, // some tests start processes of their own from its class path
    publish / skip := true
  )

lazy val postgres = project
  .in(file("jvm/postgres"))
  .dependsOn(coordinator % "compile->compile;provided->provided;test->test")
  .settings(
    name := "interlock-postgres",
    moduleName := "interlock-postgres",
    libraryDependencies ++= Seq(
      "com.zaxxer" % "HikariCP" % "2.5.1" % Provided, // Spark's own
      "org.postgresql" % "postgresql" % postgresVersion % Provided,
      munit
    ),
    Test / parallelExecution := false, // CommitPhases has one observer in a JVM
    Test / fork := true,
    publish / skip := true
  )

lazy val links = project
  .in(file("jvm/links"))
  .settings(
    name := "interlock-links",
    moduleName := "interlock-links",
    libraryDependencies ++= Seq(
      "org.apache.xbean" % "xbean-asm9-shaded" % "4.26" % Provided, // Spark's own
      munit
    ),
    publish / skip := true
  )

/** The modules whose classes the one jar has, besides those of `spark`. */
lazy val inJar = Seq(rules, coordinator, postgres, links)

lazy val spark = project
  .in(file("jvm/spark"))
  .dependsOn(inJar.map(_ % "compile"): _*)
  .settings(
    name := "interlock-spark",
    moduleName := s"interlock-spark_${builtFor.minor}",
    description := "Conflict rules for concurrent Spark writers of Delta tables",
    libraryDependencies ++= Seq(
      "org.apache.spark" %% "spark-sql" % builtFor.patch % Provided,
      "io.delta" % s"delta-spark_${builtFor.minor}_2.13" % deltaVersion,
      munit
    ),
    Compile / unmanagedSourceDirectories ++=
      ((Compile / sourceDirectory).value * "scala-spark-*").get().filter(isFor(builtFor.minor)),
    Compile / doc / scalacOptions -= "-Werror", // links to private and to JDK classes
    Compile / resourceGenerators += versionResource.taskValue,
    Compile / packageBin / mappings ++= allOf(Compile / packageBin / mappings).value,
    Compile / packageBin / mappings ++= writeLinks.value,
    Compile / packageBin / mappings += license.value -> "META-INF/LICENSE",
    Compile / packageSrc / mappings ++= allOf(Compile / packageSrc / mappings).value,
    Compile / packageSrc / mappings += license.value -> "META-INF/LICENSE",
    pomPostProcess := withoutDependencyOn("interlock-"),
    copyJar := copyIntoPythonPackage.value,
    writeLinks := linksOfJar.value,
    Test / resourceGenerators += Def.task(writeLinks.value.map(_._1)).taskValue,
    Test / fork := true,
    Test / javaOptions ++= Seq("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    Test / javaOptions ++= sparkAddOpens
  )

/** Whether a folder of sources, as `scala-spark-4.0` or `scala-spark-4.1-4.3`, is for a Spark. */
def isFor(minor: String)(folder: File): Boolean = {
  val ends = folder.getName.stripPrefix("scala-spark-").split("-")
  ends.head <= minor && minor <= ends.last
}

/** A setting of the modules in the jar. */
def allOf[A](key: TaskKey[Seq[A]]): Def.Initialize[Task[Seq[A]]] =
  Def.task(key.all(ScopeFilter(inProjects(inJar.map(p => p: ProjectReference): _*))).value.flatten)

lazy val writeLinks =
  taskKey[Seq[(File, String)]]("Writes what the classes of the jar use of Spark and Delta.")

lazy val linksOfJar = Def.task {
  val target = (Test / resourceManaged).value
  val ours = allOf(Compile / products).value ++ (Compile / products).value
  val theirs = (Compile / externalDependencyClasspath).value.files
  val arguments = Seq(target, theirs.mkString(java.io.File.pathSeparator)) ++ ours
  (Compile / run / runner).value.run(
    "io.interlock.links.WriteLinks",
    (links / Compile / fullClasspath).value.files,
    arguments.map(_.toString),
    Logger.Null
  ).get
  (target ** "*.tsv").get().map(file => file -> file.relativeTo(target).get.toString)
}

lazy val copyJar = taskKey[File]("Puts the jar into the Python package.")

lazy val license = Def.setting((ThisBuild / baseDirectory).value / "LICENSE")

lazy val versionResource = Def.task {
  val file = (Compile / resourceManaged).value / "io" / "interlock" / "version.properties"
  IO.writeLines(
    file,
    Seq(
      s"version=${version.value}",
      s"spark=${builtFor.minor}",
      s"sparks=${BuiltFor.all.map(_.minor).mkString(" ")}",
      s"delta=$deltaVersion"
    )
  )
  Seq(file)
}

lazy val copyIntoPythonPackage = Def.task {
  val jar = (Compile / packageBin).value
  val jars = (ThisBuild / baseDirectory).value / "python" / "interlock" / "jars"
  val target = jars / jar.getName
  // Never overwritten in place: a running JVM may have it open.
  IO.delete((jars * s"interlock-spark_${builtFor.minor}_*.jar").get())
  IO.copyFile(jar, target, preserveLastModified = true)
  target
}

/** The jar holds the classes of the other modules, so its POM must not name them. */
def withoutDependencyOn(module: String): Node => Node = {
  val rule = new RewriteRule {
    override def transform(node: Node): NodeSeq = node match {
      case e: Elem if e.label == "dependency" && (e \ "artifactId").text.startsWith(module) =>
        NodeSeq.Empty
      case other => other
    }
  }
  new RuleTransformer(rule).transform(_).head
}

/** The packages which Spark needs opened on JDK 17 when no launcher script starts it. */
lazy val sparkAddOpens = Seq(
  "java.base/java.lang",
  "java.base/java.lang.invoke",
  "java.base/java.lang.reflect",
  "java.base/java.io",
  "java.base/java.net",
  "java.base/java.nio",
  "java.base/java.util",
  "java.base/java.util.concurrent",
  "java.base/java.util.concurrent.atomic",
  "java.base/jdk.internal.ref",
  "java.base/sun.nio.ch",
  "java.base/sun.nio.cs",
  "java.base/sun.security.action",
  "java.base/sun.util.calendar"
).map(p => s"--add-opens=$p=ALL-UNNAMED")

addCommandAlias("check", "scalafmtSbtCheck; scalafmtCheckAll; scalafixAll --check")
addCommandAlias("format", "scalafixAll; scalafmtAll; scalafmtSbt")
