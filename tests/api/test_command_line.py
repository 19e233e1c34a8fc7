"""What the command line tells of a table, on the sessions of the two runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import interlock
import pytest
from interlock._cli import main
from pyspark.sql import SparkSession

from tests.kit.api_races import lose
from tests.kit.support import Table, make_table

SHELL = [sys.executable, "-m", "interlock"]


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line, on the session of this module."""

    @contextmanager
    def session(conf: list[tuple[str, str]]) -> Iterator[SparkSession]:
        assert conf == [("spark.x.y", "a=b")]
        yield spark

    for module in ("tables", "timeline"):
        monkeypatch.setattr(f"interlock._commands.{module}.user_session", session)
    return lambda *arguments: main([*arguments, "--conf", "spark.x.y=a=b"])


@pytest.mark.variant_cases(but=["classic"])
def test_history(
    spark: SparkSession,
    example: Table,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command("history", str(example.path)) == 0
    titles, _, *lines, others = capsys.readouterr().out.splitlines()
    assert titles.split(" | ")[0] == "version"
    assert others.startswith("(not shown: ")
    assert [line.split(" | ")[0].strip() for line in lines] == ["2", "1", "0"]
    assert "APPEND | maxcompute_delta | INSERT INTO" in " ".join(lines[0].split())
    assert command("history", str(example.path), "--limit", "1", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    (known,) = interlock.table(spark, str(example.path)).history(limit=1)
    assert known.timestamp is not None
    assert (record["class"], record["rows_in"]) == ("APPEND", 1)
    assert record["timestamp"] == known.timestamp.isoformat()
    assert record["operation_parameters"] == known.operation_parameters


@pytest.mark.variant_cases(but=["classic"])
def test_conflicts_and_explain(
    spark: SparkSession,
    example: Table,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def insert(held: str) -> None:
        spark.sql(f"INSERT INTO {example} SELECT {held}(20), 'j'")

    error = lose(spark, {"insert": insert}, f"INSERT INTO {example} VALUES (10, 'i')")["insert"]
    assert isinstance(error, interlock.ConflictError)
    assert error.txn_id is not None
    path = str(example.path)
    assert command("conflicts", path) == 0
    titles, _, line, others = capsys.readouterr().out.splitlines()
    assert titles.split(" | ")[2].strip() == "outcome"
    assert f"{error.txn_id} | REJECTED | INSERT INTO | 3" in line
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00 \|", line)
    assert others.startswith("(not shown: ")
    assert command("conflicts", path, "--limit", "1", "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["txn_id"], record["winners"], record["rules"]) == (error.txn_id, [3], ["D7"])
    assert command("explain", path, error.txn_id) == 0
    told = capsys.readouterr().out
    assert told.startswith("INSERT INTO lost: version 3 (INSERT INTO by ")
    assert command("explain", path, error.txn_id, "--json") == 0
    (explanation,) = json.loads(capsys.readouterr().out)
    assert explanation["text"] + "\n" == told
    monkeypatch.setenv("COLUMNS", "80")
    assert command("conflicts", path) == 0
    printed = capsys.readouterr()
    assert (error.txn_id in printed.out, printed.err) == (True, "")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert command("explain", path, error.txn_id) == 0
    wrapped = capsys.readouterr().out
    assert wrapped.split() == told.split()
    assert max(map(len, wrapped.splitlines())) <= 60
    assert command("explain", path, "nothing") == 1
    assert "INTERLOCK_UNKNOWN_TRANSACTION" in capsys.readouterr().err


@pytest.mark.variant_cases(but=["classic"])
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


@pytest.mark.variant_cases(but=["classic"])
def test_timeline(
    spark: SparkSession,
    example: Table,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.html"
    assert command("timeline", str(example.path), "--output", str(page), "--limit", "2") == 0
    assert capsys.readouterr().out == f"{page}\n"
    found = re.findall(r'"key":"(\w+)"', page.read_text(encoding="utf-8"))
    assert found == ["v1", "v2"]
    by_name = interlock.table(spark, str(example.path)).timeline(path=tmp_path / "all.html")
    assert re.search(r"CREATE TABLE[^.]* made version 0\.", by_name.read_text(encoding="utf-8"))
    assert command("timeline", "no_such_table") == 1
    assert capsys.readouterr().err.startswith("interlock timeline: ")


@pytest.mark.variant
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


@pytest.mark.parametrize(
    "command", ["conflicts", "doctor", "explain", "history", "timeline", "versions", ""]
)
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"Example: interlock {command or 'conflicts'} /data/trips" in told
    assert command == "doctor" or "a name as in SQL, or a path with a slash, as ./trips" in told


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize("name", ["no_such_table", "a..b"])
def test_no_such_table(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert command("history", name, "--json") == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("interlock history: ")
    assert name in printed.err
    assert printed.out == ""


@pytest.mark.variant_cases(but=["classic"])
def test_no_records_for_want_of_a_policy(
    spark: SparkSession,
    table_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(make_table(spark, table_path, policy=None).path)
    assert command("conflicts", path, "--json") == 0
    note = "The table has no policy, and conflicts are recorded only under one.\n"
    assert capsys.readouterr() == ("[]\n", note)


@pytest.mark.parametrize("name", ["conflicts", "history", "timeline"])
def test_a_storage_that_is_not_set_up(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert command(name, "nowhere://bucket/trips") == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith(f"interlock {name}: ")
    assert "nowhere" in line
    assert printed.out == ""


@pytest.mark.parametrize("form", ["{}/", "./{}", "../{0}/../{0}"])
def test_a_relative_path_with_a_slash(
    mode: str,
    example: Table,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    """Spark Connect's server has other folders."""
    folder = example.path
    (folder.parent / "beside").mkdir(exist_ok=True)
    monkeypatch.chdir(folder.parent / "beside" if form.startswith("..") else folder.parent)
    assert command("versions", form.format(folder.name), "--json") == (mode == "connect")
    told = capsys.readouterr()
    if mode == "classic":
        assert [version["version"] for version in json.loads(told.out)] == [2, 1, 0]
    else:
        assert "a path must be absolute" in told.err


@pytest.mark.parametrize(
    "arguments",
    [["policies"], ["history", "t"], ["explain", "t", "1"], ["timeline", "t"], ["lab"]],
    ids=lambda arguments: arguments[0],
)
def test_without_pyspark(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError(name='pyspark')")
    done = subprocess.run(
        [*SHELL, *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "This command needs the Python package pyspark, which is not installed: "
        "pip install 'spark-interlock[spark]'.\n"
    )


def test_another_package_that_is_missing_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: object) -> int:
        raise ModuleNotFoundError(name="else")

    monkeypatch.setattr("interlock._commands.policies.run", run)
    with pytest.raises(ModuleNotFoundError):
        main(["policies"])
