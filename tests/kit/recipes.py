"""The files of docs/recipes.md, and what runs them: environments of dbt and Airflow, and Spark.

A block with a title is a file; `write` makes it. Blocks without one run in a session, as those of
the other pages do (`tests.kit.doc_examples`).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import interlock
from interlock._small_session import SMALL_SESSION

from tests.kit.sessions import submit_options
from tests.kit.spark_version import of_this_spark
from tests.kit.tree import ROOT

PAGE = ROOT / "docs" / "recipes.md"
CONSTRAINTS = ROOT / "tests" / "recipes"
_ENVIRONMENTS = ROOT / ".build" / "recipes"
_FILE = re.compile(r'```\w+ title="([^"]+)"\n(.*?)```\n', re.DOTALL)
# What a recipe's environment takes from the one that runs the tests.
_SHARED = ("pyspark", "py4j", "delta-spark", "spark-interlock")


def files() -> dict[str, str]:
    """Return the page's files by name."""
    return dict(_FILE.findall(of_this_spark(PAGE.read_text(encoding="utf-8"))))


def write(folder: Path, *names: str) -> None:
    """Make files of the page in a folder."""
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files()[name], encoding="utf-8")


def python(tool: str, *packages: str) -> Path:
    """Return the interpreter of a tool's own environment, which is made at first use.

    Args:
        tool: names the environment and its constraints, `tests/recipes/<tool>.txt`
        packages: what is installed, in the versions that the constraints say

    """
    constraints = CONSTRAINTS / f"{tool}.txt"
    environment = _ENVIRONMENTS / tool
    made = environment / "constraints.txt"
    _ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (_ENVIRONMENTS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.read_bytes() != constraints.read_bytes():
            shutil.rmtree(environment, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            pip = [str(environment / "bin" / "pip"), "install", "--quiet"]
            subprocess.run([*pip, *packages, "--constraint", str(constraints)], check=True)
            shutil.copyfile(constraints, made)
        _share(environment)
    return environment / "bin" / "python"


def _share(environment: Path) -> None:
    """Let an environment import Spark, Delta and Interlock from the one that runs the tests."""
    shared = environment / "shared"
    shared.mkdir(exist_ok=True)
    for name in _SHARED:
        found = distribution(name)
        for top in {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = shared / top
            link.unlink(missing_ok=True)
            link.symlink_to(str(found.locate_file(top)))
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")


def spark_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a small Spark that keeps its tables and metastore in a folder."""
    derby = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    return {
        **SMALL_SESSION,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
    }


def spark_environment(folder: Path) -> dict[str, str]:
    """Return the environment in which Spark has these settings by default."""
    return {
        **os.environ,
        "INTERLOCK_JAR": str(interlock.jar_path()),
        "PYTHONPATH": str(ROOT),
        "SPARK_SUBMIT_OPTS": submit_options(spark_settings(folder)),
    }
