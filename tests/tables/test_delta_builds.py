"""Builds of Delta that were never tested: the session's start looks at what they have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from interlock._cli import main
from pyspark.sql import SparkSession

SCRIPT = """
import sys
import interlock
from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

jars, folder = sys.argv[1:]
builder = SparkSession.builder.config(map={**SMALL_SESSION, "spark.jars": jars})
try:
    spark = interlock.configure(builder).getOrCreate()
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id INT) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    for job in interlock.race(
        spark, *(f"INSERT INTO delta.`{folder}` VALUES ({n})" for n in (1, 2))
    ):
        print(job.ok)
except interlock.VersionMismatchError as error:
    print(error)
"""


def jars_of(spark: SparkSession) -> list[Path]:
    listed = spark.sparkContext.getConf().get("spark.jars", "").split(",")
    return [Path(jar.removeprefix("file:")) for jar in listed]


def built_anew(spark: SparkSession, folder: Path, old: bytes, new: bytes) -> list[Path]:
    """Return all jars of a session, with a name of the same length in all classes of Delta's."""
    jars = jars_of(spark)
    (delta,) = (jar for jar in jars if "delta-spark" in jar.name)
    with ZipFile(delta) as read, ZipFile(folder / delta.name, "w", ZIP_DEFLATED) as written:
        for name in read.namelist():
            written.writestr(name, read.read(name).replace(old, new))
    return [folder / delta.name, *(jar for jar in jars if jar != delta)]


def run(jars: list[Path], folder: Path) -> tuple[str, str]:
    names = ",".join(map(str, jars))
    command = [sys.executable, "-c", SCRIPT, names, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_another_version_runs_and_one_line_says_that_it_was_not_tested(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jars = built_anew(spark, tmp_path, b"\x01\x00\x054.4.0", b"\x01\x00\x054.4.7")
    out, log = run(jars, tmp_path / "table")
    assert out.splitlines() == ["True", "True"]
    notes = [line for line in log.splitlines() if "was tested with" in line]
    told = "Delta 4.4.7 has all that Interlock uses, but Interlock was tested with 4.4.0 only."
    assert len(notes) == 1
    assert notes[0].endswith(told)
    assert main(["doctor", "--delta", *map(str, jars)]) == 0
    assert "has all that Interlock uses" in capsys.readouterr().out


def test_a_build_without_a_method_that_is_used_is_refused_by_its_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jars = built_anew(spark, tmp_path, b"isSameLogAs", b"isLikeLogAs")
    told = "org.apache.spark.sql.delta.DeltaLog.isSameLogAs(DeltaLog) is not there"
    out, _ = run(jars, tmp_path / "table")
    assert "INTERLOCK_VERSION_MISMATCH" in out
    assert f"Delta 4.4.0 and Spark {spark.version}, which lack what it uses ({told})" in out
    assert "install io.delta:delta-spark_" in out
    assert not (tmp_path / "table").exists()
    assert main(["doctor", "--delta", *map(str, jars)]) == 1
    assert told in capsys.readouterr().out


def test_files_that_are_no_jars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jar = tmp_path / "delta.jar"
    assert main(["doctor", "--delta", str(jar)]) == 1
    assert f"{jar} is not there" in capsys.readouterr().out
    jar.write_text("half of a jar")
    assert main(["doctor", "--delta", str(jar)]) == 1
    assert f"{jar} is no jar" in capsys.readouterr().out


def test_a_patch_before_the_jar_counts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loader takes DeltaLog from the first jar, and all other classes from the second."""
    whole = built_anew(spark, tmp_path, b"isSameLogAs", b"isLikeLogAs")
    patch = tmp_path / "patch.jar"
    with ZipFile(whole[0]) as other, ZipFile(patch, "w") as some:
        name = "org/apache/spark/sql/delta/DeltaLog.class"
        some.writestr(name, other.read(name))
    assert main(["doctor", "--delta", str(patch), *map(str, jars_of(spark))]) == 1
    assert "isSameLogAs(DeltaLog) is not there" in capsys.readouterr().out
