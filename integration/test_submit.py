"""The commands that `docs/ways-in.md` gives, run as they stand there, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from interlock._artifacts import POSTGRES_COORDINATES, delta_coordinates
from interlock._small_session import SMALL_SESSION

from tests.kit.sessions import submit_options
from tests.kit.spark_version import of_this_spark
from tests.kit.support import Table, deltalake_rows, tags
from tests.kit.tree import ROOT

WAYS_IN = ROOT / "docs" / "ways-in.md"
SCALA_PACKAGE = f"--packages {delta_coordinates()}"
TABLE = """
CREATE TABLE t (id INT, v STRING) USING delta
TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta');
INSERT INTO t VALUES (1, 'a'), (2, 'b');
TRUNCATE TABLE t;
INSERT OVERWRITE t VALUES (3, 'c');
"""
READS = """
SELECT id, v FROM t VERSION BETWEEN 2 AND get_latest_version('t');
SELECT id, v FROM t TIMESTAMP BETWEEN '2020-01-01' AND current_timestamp();
SELECT id, v FROM t VERSION AS OF get_latest_version('t', 3) WHERE id = 2;
SHOW HISTORY FOR TABLE t LIMIT 1;
CALL interlock.versions(table => 't', limit => 1);
"""
JOB = f"""
import interlock
from pyspark.sql import SparkSession

spark = interlock.configure(SparkSession.builder).getOrCreate()
for statement in '''{TABLE}'''.strip().strip(";").split(";"):
    spark.sql(statement)
try:
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('interlock.policy' = 'maxcompute_dleta')")
except interlock.InterlockError as error:
    print("refused:", error.getCondition())
for statement in '''{READS}'''.strip().strip(";").split(";"):
    for row in spark.sql(statement).collect():
        print(*row, sep="\\t")
table = interlock.table(spark, "t")
print("between:", table.between(versions=(2, None)).collect())
print("latest:", table.latest_version(), [record.version for record in table.versions()])
"""
PLAIN_JOB = """
from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate().sql("SELECT 1")
print("started")
"""
CONFIGURED_JOB = """
import os
import sys

import interlock
from pyspark.sql import SparkSession

given = os.environ.pop("PYSPARK_SUBMIT_ARGS")
if "later" in sys.argv:
    builder = interlock.configure(SparkSession.builder)
os.environ["PYSPARK_SUBMIT_ARGS"] = given
if "later" not in sys.argv:
    builder = interlock.configure(SparkSession.builder)
spark = builder.getOrCreate()
assert os.environ["PYSPARK_SUBMIT_ARGS"] == given
spark.sql("CREATE TABLE t (id INT) USING delta TBLPROPERTIES ('interlock.policy' = 'row_level')")
print(spark.conf.get("spark.jars"))
"""


@pytest.fixture
def commands() -> dict[str, str]:
    """The page's first command of each program, with the line that sets JAR."""
    page = of_this_spark(WAYS_IN.read_text(encoding="utf-8"))
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    jar = next(line for line in lines if line.startswith("JAR="))
    programs = ("spark-submit", "spark-sql")
    starts = {name: next(line for line in lines if line.startswith(name)) for name in programs}
    return {name: f"{jar}\n{start}" for name, start in starts.items()}


def small(folder: Path) -> str:
    """Defaults for all processes: one core, and everything below the test's folder."""
    return submit_options(
        {
            **SMALL_SESSION,
            "spark.master": "local[1]",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.catalogImplementation": "in-memory",
        }
    )


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": small(folder),
    }
    return subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def check_table(folder: Path) -> None:
    """The TRUNCATE is a version of Interlock's, and each commit bears its tags."""
    table = Table(folder / "warehouse" / "t")
    assert deltalake_rows(table) == ((3, "c"),)
    classes = [tags(table, version).get("interlock.class") for version in (1, 2, 3)]
    assert classes == ["APPEND", "OVERWRITE", "OVERWRITE"]


def check_reads(printed: str) -> None:
    """Each statement of READS has printed its row, whichever program ran it."""
    rows = [line.split("\t") for line in printed.splitlines() if "\t" in line]
    assert [row[:2] for row in rows[:3]] == [["3", "c"], ["3", "c"], ["2", "b"]]
    history, versions = rows[3:]
    assert history[3:6] == ["OVERWRITE", "maxcompute_delta", "INSERT OVERWRITE"]
    assert (versions[0], versions[3]) == ("3", "INSERT OVERWRITE")


def test_spark_submit(tmp_path: Path, commands: dict[str, str]) -> None:
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    done = run(tmp_path, commands["spark-submit"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused: INTERLOCK_UNKNOWN_POLICY" in done.stdout
    check_reads(done.stdout)
    assert "between: [Row(id=3, v='c')]" in done.stdout
    assert "latest: 3 [3, 2, 1, 0]" in done.stdout
    check_table(tmp_path)


@pytest.mark.variant
def test_spark_sql_with_the_plugin(tmp_path: Path, commands: dict[str, str]) -> None:
    assert "InterlockPlugin" in commands["spark-sql"]
    unknown = "ALTER TABLE t SET TBLPROPERTIES ('interlock.policy' = 'maxcompute_dleta');"
    (tmp_path / "job.sql").write_text(TABLE + READS + unknown, encoding="utf-8")
    done = run(tmp_path, commands["spark-sql"])
    assert done.returncode != 0
    assert "[INTERLOCK_UNKNOWN_POLICY]" in done.stderr
    assert "Did you mean 'maxcompute_delta'?" in done.stderr
    check_reads(done.stdout)
    check_table(tmp_path)


@pytest.mark.variant_cases("before")
@pytest.mark.parametrize("when", ["before", "later"])
def test_configure_beside_pyspark_submit_args(tmp_path: Path, when: str) -> None:
    """The variable is set before `configure`, or between it and the start."""
    (tmp_path / "job.py").write_text(CONFIGURED_JOB, encoding="utf-8")
    with ZipFile(tmp_path / "ours.jar", "w") as jar:
        jar.writestr("ours.txt", "")
    arguments = f"--packages {POSTGRES_COORDINATES} --jars ours.jar pyspark-shell"
    done = run(tmp_path, f"PYSPARK_SUBMIT_ARGS='{arguments}' python job.py {when}")
    assert done.returncode == 0, done.stderr
    for name in ("ours", "postgresql", "delta-spark", "interlock-spark"):
        assert re.search(rf"/[^/,]*{name}[^/,]*\.jar\b", done.stdout), name


@pytest.mark.variant_cases("no Delta jar")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            ("--conf", "--conf spark.interlock.version=0.0.9 --conf"),
            r"Interlock cannot start with the Python package spark-interlock 0\.0\.9 beside this "
            r"jar of version [\d.]+: install spark-interlock==[\d.]+, or use the jar that the "
            r"package brings\.",
            id="a wheel of another version",
        ),
        pytest.param(
            (SCALA_PACKAGE, ""),
            f"Interlock cannot start with no Delta jar: install {delta_coordinates()}.",
            id="no Delta jar",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    tmp_path: Path, commands: dict[str, str], change: tuple[str, str], sentence: str
) -> None:
    (tmp_path / "job.py").write_text(PLAIN_JOB, encoding="utf-8")
    before, after = change
    assert before in commands["spark-submit"]
    done = run(tmp_path, commands["spark-submit"].replace(before, after, 1))
    assert done.returncode != 0
    assert "started" not in done.stdout
    assert re.search(sentence, done.stderr + done.stdout)
