"""What `make release` has laid out: complete, and installed from an empty home."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
from interlock import __version__
from interlock._artifacts import DELTA_VERSION, MAVEN_GROUP, SCALA, SPARK_MINORS

from tests.kit.doc_examples import examples
from tests.kit.tree import ROOT

pytestmark = pytest.mark.release

MAVEN = ROOT / "release" / "maven"
PYTHON = ROOT / "release" / "python"
WHEEL = PYTHON / f"spark_interlock-{__version__}-py3-none-any.whl"
SDIST = PYTHON / f"spark_interlock-{__version__}.tar.gz"

ARTIFACTS = (".jar", ".pom", "-sources.jar", "-javadoc.jar", "-cyclonedx.json")
CHECKSUMS = ("md5", "sha1", "sha256", "sha512")

POLICED_TABLE = """
CREATE OR REPLACE TABLE t (id INT, city STRING) USING delta
TBLPROPERTIES ('interlock.policy' = 'row_level');
INSERT INTO t VALUES (1, 'Oslo'), (2, 'Rome');
UPDATE t SET city = 'Bergen' WHERE id = 1;
SELECT id, city FROM t ORDER BY id;
CALL interlock.versions(table => 't', limit => 1);
"""


def folder(spark: str) -> Path:
    """The folder of the jar for a version of Spark."""
    return MAVEN.joinpath(*MAVEN_GROUP.split("."), f"interlock-spark_{spark}_{SCALA}", __version__)


def artifact(spark: str, ending: str) -> Path:
    return folder(spark) / f"interlock-spark_{spark}_{SCALA}-{__version__}{ending}"


@pytest.mark.parametrize("spark", SPARK_MINORS)
def test_the_repository_has_what_maven_central_asks_for(spark: str) -> None:
    signed = bool(list(MAVEN.rglob("*.asc")))
    beside = ("", *(f".{name}" for name in CHECKSUMS), *([".asc"] if signed else []))
    expected = {f"{artifact(spark, e).name}{b}" for e in ARTIFACTS for b in beside}
    assert {path.name for path in folder(spark).iterdir()} == expected
    for ending in ARTIFACTS:
        content = artifact(spark, ending).read_bytes()
        for name in CHECKSUMS:
            written = artifact(spark, f"{ending}.{name}").read_text(encoding="ascii")
            assert written == hashlib.new(name, content).hexdigest()


@pytest.mark.parametrize("spark", SPARK_MINORS)
def test_the_pom_has_what_maven_central_asks_for(spark: str) -> None:
    pom = ElementTree.parse(artifact(spark, ".pom")).getroot()
    asked = "name description url licenses/license/name developers/developer/name scm/connection"
    for path in asked.split():
        assert pom.findtext("/".join(f"{{*}}{name}" for name in path.split("/")))
    dependencies = {
        dependency.findtext("{*}artifactId"): dependency.findtext("{*}version")
        for dependency in pom.iterfind("{*}dependencies/*")
        if dependency.findtext("{*}scope") is None
    }
    assert dependencies.pop("scala-library")
    assert dependencies == {f"delta-spark_{spark}_{SCALA}": DELTA_VERSION}


@pytest.mark.parametrize("spark", SPARK_MINORS)
def test_the_sbom_names_delta_and_each_licence(spark: str) -> None:
    sbom = json.loads(artifact(spark, "-cyclonedx.json").read_text(encoding="utf-8"))
    assert sbom["bomFormat"] == "CycloneDX"
    others = [c for c in sbom["components"] if c["group"] != MAVEN_GROUP]
    assert (f"delta-spark_{spark}_{SCALA}", DELTA_VERSION) in {
        (component["name"], component["version"]) for component in others
    }
    assert [c["name"] for c in others if not c.get("licenses")] == []


@pytest.mark.parametrize("spark", SPARK_MINORS)
def test_the_wheel_has_the_jar_of_the_repository(spark: str) -> None:
    jar = artifact(spark, ".jar")
    assert ZipFile(WHEEL).read(f"interlock/jars/{jar.name}") == jar.read_bytes()


def test_the_source_distribution_makes_the_same_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(tmp_path), str(SDIST)]
    subprocess.run(command, check=True)
    assert (tmp_path / WHEEL.name).read_bytes() == WHEEL.read_bytes()


@dataclass(frozen=True)
class EmptyHome:
    """A home that had nothing in it, with an environment into which the wheel was installed."""

    spark: str
    folder: Path
    environment: dict[str, str]

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment; its output."""
        command = [str(self.folder / "venv" / "bin" / program), *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=SPARK_MINORS)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EmptyHome:
    """An empty home, and the newest patch of one version of Spark in it.

    pip has the cache of this machine, since PySpark alone is 450 MB; Ivy has nothing.
    """
    folder = tmp_path_factory.mktemp("home")
    cache = [sys.executable, "-m", "pip", "cache", "dir"]
    ours = ("JDK_JAVA_OPTIONS", "PYSPARK_PYTHON", "PYTHONPATH", "SPARK_HOME", "SPARK_CONF_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | {
        "HOME": str(folder),
        "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
        "JDK_JAVA_OPTIONS": f"-Duser.home={folder}",
        "PIP_CACHE_DIR": subprocess.check_output(cache, text=True).strip(),
    }
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    made = EmptyHome(request.param, folder, environment)
    wheel = f"spark-interlock[spark]=={__version__}"
    made.run("pip", "install", "--find-links", str(PYTHON), wheel, f"pyspark=={made.spark}.*")
    return made


EXTENSIONS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "io.interlock.spark.InterlockExtension",
    "spark.sql.catalog.spark_catalog": "io.interlock.spark.InterlockCatalog",
    "spark.sql.catalog.interlock": "io.interlock.spark.procedures.InterlockProcedures",
}
PLUGIN = {"spark.plugins": "org.apache.spark.interlock.InterlockPlugin"}


@pytest.mark.parametrize("settings", [EXTENSIONS, PLUGIN], ids=["extensions", "plugin"])
def test_the_package_serves_sql_from_an_empty_home(
    home: EmptyHome, settings: dict[str, str]
) -> None:
    coordinates = f"{MAVEN_GROUP}:interlock-spark_{home.spark}_{SCALA}:{__version__}"
    said = home.run(
        "spark-sql",
        *("--master", "local[1]", "--repositories", MAVEN.as_uri(), "--packages", coordinates),
        *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
        *("-e", POLICED_TABLE),
    )
    assert "1\tBergen\n2\tRome\n" in said
    assert said.endswith("\tUPDATE\n")
    assert list(home.folder.glob(f".ivy2*/jars/{MAVEN_GROUP}_interlock-spark_{home.spark}_*.jar"))


def test_the_wheel_runs_the_first_example_from_an_empty_home(home: EmptyHome) -> None:
    first = next(examples((ROOT / "README.md").read_text(encoding="utf-8")))
    (home.folder / "trips.py").write_text(first.code, encoding="utf-8")
    assert home.run("python", "trips.py") == first.output
