"""`interlock doctor`: each check finds what is wrong, and the command says what to fix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace as Names
from typing import Any
from zipfile import ZipFile

import interlock
import pytest
from interlock import _artifacts, _diagnosis
from interlock._cli import main
from interlock._diagnosis import Check
from interlock._session import CATALOG, DELTA_EXTENSION, EXTENSION, PROCEDURES
from pyspark.errors import ParseException

from tests.kit.command import INTERLOCK


class Conf:
    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def get(self, key: str, default: str | None) -> str | None:
        return self._settings.get(key, default)


class Session:
    """Stands for a session on a server, with some settings and an answer to any statement."""

    def __init__(self, *, answer: Exception | None = None, **settings: str) -> None:
        self.conf = Conf({f"spark.sql.{key}": value for key, value in settings.items()})
        self._answer = answer

    def sql(self, _: str) -> None:
        if self._answer:
            raise self._answer


GOOD: dict[str, Any] = {
    "extensions": f"{DELTA_EXTENSION},x.Y,{EXTENSION}",
    "catalog.spark_catalog": CATALOG,
    "catalog.interlock": PROCEDURES,
    "answer": interlock.UsageError("[INTERLOCK_COMPACT_SYNTAX]"),
}


def of_session(**changed: Any) -> dict[str, Check]:
    session: Any = Session(**{**GOOD, **changed})
    return {check.name: check for check in _diagnosis.of_session(session, Path())}


def java_says(folder: Path, text: str) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("version", "ok"), [("1.8", False), ("11", False), ("17", True), ("25", True), ("?", False)]
)
def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ok: bool) -> None:
    text = f"    java.specification.version = {version}"
    monkeypatch.setenv("JAVA_HOME", java_says(tmp_path, text))
    check = _diagnosis.java()
    assert check.ok == ok
    assert check.fix == "install JDK 17 or newer, or set JAVA_HOME to one"


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _diagnosis.java().found == f"none at {tmp_path}/bin/java"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _diagnosis.java().found == "none on the PATH"


def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _diagnosis.spark().ok
    monkeypatch.setattr("pyspark.__version__", "4.20.0")
    assert not _diagnosis.spark().ok
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert _diagnosis.spark().found == "PySpark is not installed"


def test_the_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _diagnosis.jar().ok
    other = tmp_path / "other.jar"
    monkeypatch.setattr(_artifacts, "jar_path", lambda: other)
    with ZipFile(other, "w") as jar:
        jar.writestr("io/interlock/version.properties", "version=0.0.9\nspark=4.2\n")
    check = _diagnosis.jar()
    assert (check.ok, check.found) == (False, f"0.0.9 in wheel {interlock.__version__}")
    other.write_text("cut off")
    assert not _diagnosis.jar().ok


def test_no_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_artifacts, "jar_name", lambda: "none.jar")
    check = _diagnosis.jar()
    assert not check.ok
    assert "has no none.jar" in check.found


def test_a_session_in_order() -> None:
    checks = of_session()
    assert list(checks) == ["Extension", "Catalog", "Procedures"]
    assert all(check.ok for check in checks.values())


@pytest.mark.parametrize(
    ("name", "changed", "found"),
    [
        ("Extension", {"answer": ParseException("[P] no\nline 1")}, "does not answer: [P] no"),
        ("Extension", {"answer": None}, "takes what is no statement"),
        ("Extension", {"extensions": f"{EXTENSION},{DELTA_EXTENSION}"}, "stands before Delta's"),
        ("Catalog", {"catalog.spark_catalog": "my.Catalog"}, "my.Catalog"),
        ("Procedures", {"catalog.interlock": None}, "none"),
    ],
)
def test_what_is_wrong_with_a_session(name: str, changed: dict[str, Any], found: str) -> None:
    checks = of_session(**changed)
    assert [check.name for check in checks.values() if not check.ok] == [name]
    assert checks[name].found == found
    assert checks[name].fix.startswith("set spark.sql.")


@pytest.mark.parametrize(
    ("fault", "delta", "folder", "wrong"),
    [
        (None, "4.4.0", "", []),
        (None, "4.4.7", "", []),
        ("no hard link can be made", "4.4.0", "", ["Hard links in {}"]),
        (None, "4.4.0", "none", ["Hard links in {}/none"]),
    ],
)
def test_what_only_a_session_on_this_machine_tells(
    tmp_path: Path, fault: str | None, delta: str, folder: str, wrong: list[str]
) -> None:
    session: Any = Session(**GOOD)
    ours = Names(spark=Names(Maintenance=Names(linkFault=lambda _: fault)))
    deltas = Names(package=Names(VERSION=lambda: delta))
    session._jvm = Names(io=Names(interlock=ours, delta=deltas))
    checks = list(_diagnosis.of_session(session, tmp_path / folder))
    assert [check.name for check in checks[3:]] == ["Delta", f"Hard links in {tmp_path / folder}"]
    assert [check.name for check in checks if not check.ok] == [n.format(tmp_path) for n in wrong]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command, on a session that never starts."""

    @contextmanager
    def session(_: object) -> Iterator[None]:
        raise RuntimeError("no such package")
        yield

    monkeypatch.setattr("interlock._commands.doctor.user_session", session)
    return lambda *arguments: main(["doctor", *arguments])


def test_it_says_what_to_fix(
    doctor: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor() == 1
    *ok, failed, fix = capsys.readouterr().out.splitlines()
    assert [line[:10] for line in ok] == ["ok   Java:", "ok   Spark", "ok   Jar: "]
    assert failed == "FAIL Session: does not start: no such package"
    assert fix.strip().startswith("fix: correct the settings")


def test_no_session_is_started_where_parts_are_missing(
    doctor: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    assert doctor("--json") == 1
    checks = json.loads(capsys.readouterr().out)
    assert [(check["name"], check["ok"]) for check in checks] == [
        ("Java", True),
        ("Spark", False),
        ("Jar", False),
    ]
    fix = "pip install 'pyspark==4.2.*'"
    assert [check.get("fix") for check in checks] == [None, fix, fix]


def test_a_setting_without_value_is_refused(doctor: Callable[..., int]) -> None:
    with pytest.raises(SystemExit) as caught:
        doctor("--conf", "spark.master")
    assert caught.value.code == 2


@pytest.mark.variant
def test_this_machine_from_the_command_line(tmp_path: Path) -> None:
    """In a process of its own: one session with the user's settings, and both kinds of result."""
    (tmp_path / "spark-defaults.conf").write_text(f"spark.sql.catalog.interlock {PROCEDURES}\n")
    command = [*INTERLOCK, "doctor", str(tmp_path), "--json", "--conf"]
    done = subprocess.run(
        [*command, "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.X"],
        cwd=tmp_path,
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    links = f"Hard links in {tmp_path}"
    names = ["Java", "Spark", "Jar", "Extension", "Catalog", "Procedures", "Delta", links]
    assert list(checks) == names
    assert [name for name, check in checks.items() if not check["ok"]] == ["Catalog"]
    assert checks["Catalog"]["found"] == "org.apache.spark.sql.delta.catalog.X"
    assert checks["Delta"]["found"] == "4.4.0"
    assert list(tmp_path.iterdir()) == [tmp_path / "spark-defaults.conf"]
    assert done.returncode == 1
