"""The commit stores of the jar, without Spark: one JVM that runs beside the tests'."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from interlock import _artifacts
from interlock._commands.sessions import quiet_start
from interlock._session import configure
from interlock._small_session import SMALL_SESSION
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
TABLE_ID = "00000000-0000-4000-8000-000000000001"


@contextmanager
def coordinator_jvm(*, java_options: str = "") -> Iterator[Any]:
    """Start a JVM with the jar and the driver of Postgres."""
    launch: Any = launch_gateway
    listen: Any = ensure_callback_server_started
    builder: Any = SparkSession.builder
    wanted = {
        **SMALL_SESSION,
        "spark.jars.packages": _artifacts.POSTGRES_COORDINATES,
        _JAVA_OPTIONS: f"{SMALL_SESSION[_JAVA_OPTIONS]} {java_options}",
    }
    before = dict(builder._options)
    try:
        builder._options = dict(wanted)
        options = dict(configure(builder)._options)
    finally:
        builder._options = before
    with quiet_start():
        gateway = launch(conf=SparkConf().setAll(list(options.items())))
    listen(gateway)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)


class Refused(Exception):  # noqa: N818
    """A CoordinatorException."""

    def __init__(self, condition: str, parameters: dict[str, str], text: str) -> None:
        super().__init__(text)
        self.condition, self.parameters = condition, parameters


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request; `winners` are the winners' transactions."""

    kind: str
    version: int | None = None
    winners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Store:
    """A PostgresStore, or any other."""

    jvm: Any
    java: Any

    def commit(
        self,
        log: Path | str,
        version: int,
        *txn_ids: str,
        table_id: str = TABLE_ID,
        new_table_id: str | None = None,
        lines: tuple[str, ...] = ('{"add":{}}',),
        operation: str = "WRITE",
        is_same_table: Callable[[], bool] = lambda: True,
    ) -> list[Outcome]:
        """Commit one batch, which begins at `version`; `lines` follow each commitInfo."""
        old, new = ("" if version == 0 else table_id), new_table_id or table_id
        asked = (_Function(is_same_table), _Function(lambda: None))
        requests = [
            self.jvm.io.interlock.coordinator.CommitRequest(
                version + i,
                txn,
                old if i == 0 else new,
                new,
                self._lines(txn, operation, lines),
                *asked,
                False,
            )
            for i, txn in enumerate(txn_ids)
        ]
        with refusals():
            found = self.java.commit(self.log(log), _seq(self.jvm, requests))
            return [_outcome(found.apply(i)) for i in range(found.size())]

    def log(self, folder: Path | str) -> Any:
        path = self.jvm.org.apache.hadoop.fs.Path(f"file:{folder}")
        return self.jvm.io.interlock.coordinator.TableLog(
            path, self.jvm.org.apache.hadoop.conf.Configuration()
        )

    def close(self) -> None:
        self.java.close()

    def _lines(self, txn: str, operation: str, lines: tuple[str, ...]) -> Any:
        return _seq(self.jvm, [commit_info(txn, operation), *lines]).iterator()


def postgres_store(jvm: Any, settings: Mapping[str, str], *, name: str = "main") -> Store:
    package = jvm.io.interlock.coordinator.postgres
    with refusals():
        return Store(jvm, package.PostgresStore(read_settings(jvm, settings, name=name), None))


def read_settings(jvm: Any, settings: Mapping[str, str], *, name: str = "main") -> Any:
    pairs = [jvm.scala.Tuple2(key, value) for key, value in settings.items()]
    scala_map = getattr(_module(jvm, "scala.collection.immutable.Map"), "from")(_seq(jvm, pairs))
    with refusals():
        return jvm.io.interlock.coordinator.postgres.PostgresSettings.of(name, scala_map)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise the JVM's CoordinatorException as `Refused`."""
    try:
        yield
    except Py4JJavaError as e:
        java = e.java_exception
        if not java.getClass().getName().endswith(".CoordinatorException"):
            raise AssertionError(str(e)) from None
        parameters = java.parameters().mkString("\0")
        pairs = dict(text.split(" -> ", 1) for text in parameters.split("\0"))
        raise Refused(java.condition(), pairs, str(e)) from None


def admin(jvm: Any, command: str, options: Mapping[str, str], *, password: str) -> dict[str, Any]:
    """The result that `interlock coordinator` gets from the jar."""
    with NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(password)
        file.flush()
        given = jvm.java.util.HashMap()
        for key, value in {**options, "passwordFile": file.name}.items():
            given.put(key, value)
        commands = jvm.io.interlock.coordinator.postgres.Admin
        text: str = (
            commands.repair(given, jvm.org.apache.hadoop.conf.Configuration(), None)
            if command == "repair"
            else commands.run(command, given)
        )
    result: dict[str, Any] = json.loads(text)
    return result


class _Function:
    """A function of Scala without arguments, whose calls may name its result's primitive type."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("apply"):
            return self._call
        raise AttributeError(name)

    class Java:
        implements = ("scala.Function0",)


def commit_info(txn: str, operation: str = "WRITE") -> str:
    return json.dumps({"commitInfo": {"operation": operation, "txnId": txn}})


def log_file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def write_foreign(log: Path, version: int, txn: str) -> None:
    """Commit as a writer without Interlock does."""
    log.mkdir(parents=True, exist_ok=True)
    with log_file(log, version).open("x", encoding="utf-8") as file:
        file.write(f'{commit_info(txn)}\n{{"add":{{}}}}\n')


def transactions(log: Path) -> list[str]:
    """The transactions of the log, in order; its versions have no gap and hold one commit each."""
    files = sorted(log.glob("*.json"))
    assert [int(file.stem) for file in files] == list(range(len(files)))
    return [_info(file)["txnId"] for file in files]


def stamp(log: Path, version: int) -> tuple[str, int, int]:
    """The coordinator, epoch and sequence in a commit."""
    coordinator, epoch, sequence = _info(log_file(log, version))["tags"][
        "interlock.coordinator"
    ].split("/")
    return coordinator, int(epoch), int(sequence)


def _info(file: Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    found: dict[str, Any] = info["commitInfo"]
    return found


def _outcome(java: Any) -> Outcome:
    kind = java.getClass().getSimpleName()
    if kind == "Taken":
        winners = [java.winners().apply(i) for i in range(java.winners().size())]
        txns = [json.loads(w.lines().apply(0))["commitInfo"]["txnId"] for w in winners]
        return Outcome(kind, None, tuple(txns))
    return Outcome(kind, java.version() if kind == "Committed" else None)


def _seq(jvm: Any, items: list[Any]) -> Any:
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq()


def _module(jvm: Any, name: str) -> Any:
    with suppress(AttributeError):
        return jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)
    raise LookupError(name)
