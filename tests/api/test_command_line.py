"""`interlock history` and `interlock versions`, on the sessions of the two runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import interlock
import pytest
from interlock.cli import main
from pyspark.sql import SparkSession

from tests.support import Table

SHELL = [sys.executable, "-c", "from interlock.cli import main; exit(main())"]


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line, on the session of this module."""

    @contextmanager
    def session(conf: list[tuple[str, str]]) -> Iterator[SparkSession]:
        assert conf == [("spark.x.y", "a=b")]
        yield spark

    monkeypatch.setattr("interlock.commands.tables.user_session", session)
    return lambda *arguments: main([*arguments, "--conf", "spark.x.y=a=b"])


def test_history(
    spark: SparkSession,
    example: Table,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command("history", str(example.path)) == 0
    titles, _, *lines = capsys.readouterr().out.splitlines()
    assert titles.split(" | ")[0] == "version"
    assert [line.split(" | ")[0].strip() for line in lines] == ["2", "1", "0"]
    assert "APPEND | maxcompute_delta | WRITE" in " ".join(lines[0].split())
    assert command("history", str(example.path), "--limit", "1", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    (known,) = interlock.table(spark, str(example.path)).history(limit=1)
    assert known.timestamp is not None
    assert (record["class"], record["rows_in"]) == ("APPEND", 1)
    assert record["timestamp"] == known.timestamp.isoformat()
    assert record["operation_parameters"] == known.operation_parameters


def test_versions(
    example: Table, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("versions", str(example)) == 0  # as SQL names it
    assert [line.split(" | ")[0].strip() for line in capsys.readouterr().out.splitlines()] == [
        "version",
        "-" * 7 + "-+-" + "-" * 29 + "-+-" + "-" * 29 + "-+-" + "-" * 12,
        "2",
        "1",
        "0",
    ]
    assert command("versions", str(example), "--limit", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [record["version"] for record in found] == [2, 1]
    assert set(found[0]) == {"version", "time_version", "timestamp", "operation"}


def test_a_process_that_has_only_a_server(server: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*SHELL, "doctor", str(tmp_path), "--json", "--conf", f"spark.remote={server}"],
        capture_output=True,
        text=True,
        check=False,
    )
    checks = json.loads(done.stdout)
    names = ["Java", "Spark", "Jar", "Extension", "Catalog", "Procedures"]
    assert [(check["name"], check["ok"]) for check in checks] == [(name, True) for name in names]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["no_such_table", "a..b"])
def test_no_such_table(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert command("history", name, "--json") == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("interlock history: ")
    assert name in printed.err
    assert printed.out == ""
