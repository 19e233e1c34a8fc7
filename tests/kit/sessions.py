"""Spark sessions with Interlock: one in this process, and one on a server of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import interlock
from interlock._artifacts import delta_coordinates
from interlock._session import DELTA_EXTENSION
from interlock._small_session import JVM_OPTIONS, SMALL_SESSION
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

# One JVM runs all tests of a worker. Its second compiler pays off only for code that runs four
# times as often as its default threshold. A heap that begins small is collected as a whole each
# time that it grows.
_LONG_JVM = (
    "-Xms1g -Xmn512m "
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
_SCRIPTS = {"spark.sql.scripting.enabled": "true"}  # the default from Spark 4.1 on
SMALL = {
    **SMALL_SESSION,
    **_SCRIPTS,
    "spark.driver.extraJavaOptions": f"{JVM_OPTIONS} {_LONG_JVM}",
    # Planning again between stages takes a twelfth of the tests' time. The processes that
    # tests start have it, as users do.
    "spark.sql.adaptive.enabled": "false",
    # Delta keeps 4 MB for each of a module's tables; soaks of very many files need more.
    "spark.driver.memory": os.environ.get("INTERLOCK_DRIVER_MEMORY", "2g"),
}
_SERVER_SETTINGS = {
    **SMALL_SESSION,
    **_SCRIPTS,
    "spark.plugins": "org.apache.spark.interlock.InterlockPlugin",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.jars.packages": delta_coordinates(),
}
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_CONNECT_STARTED = re.compile(r"Spark Connect server started at: \S+:(\d+)")
_THRIFT_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_HISTORY_STARTED = re.compile(r"Bound HistoryServer to \S+ and started at http://\S+:(\d+)")
_THRIFT_STARTED = re.compile(r"ThriftBinaryCLIService on port (\d+)")


def submit_options(settings: Mapping[str, str] = SMALL_SESSION) -> str:
    """Return the `SPARK_SUBMIT_OPTS` that make settings the defaults of what a user starts.

    `spark-defaults.conf` would do so too, but its folder is on the class path, which then is not
    that of the archive of classes.
    """
    options = "spark.driver.extraJavaOptions"
    defaults = (f"-D{key}={value}" for key, value in settings.items() if key != options)
    return " ".join([*defaults, settings[options]])


def stock(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add Delta, as its own documentation does, and no Interlock."""
    from delta import configure_spark_with_delta_pip

    return configure_spark_with_delta_pip(
        builder.config("spark.sql.extensions", DELTA_EXTENSION).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )


@contextmanager
def classic_session(**settings: str) -> Iterator[SparkSession]:
    """Give a new session, and remove all traces of it before the next one.

    Sessions with the same settings share one Spark, which starts with the first of them and stops
    when other settings are asked for.
    """
    session = _spark(settings).newSession()
    try:
        yield session
    finally:
        _forget_tables(session)


_WAREHOUSE = TemporaryDirectory(prefix="interlock-warehouse-")
_running: tuple[Mapping[str, str], SparkSession] | None = None


def _spark(settings: Mapping[str, str]) -> SparkSession:
    """Return the first session of the Spark that runs with some settings in this process."""
    global _running
    if _running is None or _running[0] != settings:
        if _running is not None:
            _stop(*_running)
        if any(key.startswith("spark.interlock.coordinator.") for key in settings):
            _end_jvm()
        builder = (
            SparkSession.builder.appName("interlock tests")
            .config(map={**SMALL, **settings})
            .config("spark.sql.warehouse.dir", _WAREHOUSE.name)
        )
        _running = settings, interlock.configure(builder).getOrCreate()
        _running[1].sparkContext.setLogLevel("OFF")
    return _running[1]


def _stop(settings: Mapping[str, str], session: SparkSession) -> None:
    """Stop a Spark, and clear its settings, which the next one would inherit."""
    system: Any = session._jvm.System  # type: ignore[union-attr]
    session.stop()
    for key in settings:
        system.clearProperty(key)


def _end_jvm() -> None:
    """End the JVM, if there is one: the next Spark needs jars that it was not started with."""
    context: Any = SparkContext
    if context._gateway is not None:
        context._gateway.shutdown()
        context._gateway.proc.stdin.close()
        context._gateway.proc.wait()
        context._gateway = context._jvm = None


def _forget_tables(session: SparkSession) -> None:
    session.catalog.clearCache()
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # which would keep them for an hour
    catalog = cast(Any, session)._jsparkSession.sharedState().externalCatalog()
    for name in _texts(catalog.listTables("default")):
        catalog.dropTable("default", name, True, True)
    for name in _texts(catalog.listDatabases()):
        if name != "default":
            catalog.dropDatabase(name, True, True)
    for left in Path(_WAREHOUSE.name).iterdir():
        shutil.rmtree(left)


def _texts(sequence: Any) -> list[str]:
    return [sequence.apply(index) for index in range(sequence.size())]


@contextmanager
def connect_server(folder: Path, **settings: str) -> Iterator[str]:
    """Start a Spark Connect server with Interlock's plugin, give its address, and end it."""
    with _server(folder, _CONNECT_SERVER, _CONNECT_STARTED, settings) as port:
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def thrift_server(folder: Path, **settings: str) -> Iterator[str]:
    """Start a Thrift server with Interlock's plugin, give its JDBC URL, and end it."""
    local = {
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": "0",
    }
    with _server(folder, _THRIFT_SERVER, _THRIFT_STARTED, {**local, **settings}) as port:
        yield f"jdbc:hive2://127.0.0.1:{port}"


@contextmanager
def history_server(folder: Path, event_log: Path) -> Iterator[str]:
    """Start a History Server that keeps its data on the disk, give its address, and end it."""
    settings = {
        "spark.history.fs.logDirectory": event_log.as_uri(),
        "spark.history.store.path": str(folder / "store"),
        "spark.history.ui.port": "0",
    }
    environment = {
        "SPARK_DAEMON_CLASSPATH": str(interlock.jar_path()),
        "SPARK_HISTORY_OPTS": " ".join(f"-D{key}={value}" for key, value in settings.items()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = ["spark-class", "org.apache.spark.deploy.history.HistoryServer"]
    with _started(folder, command, _HISTORY_STARTED, environment) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _server(
    folder: Path, main: str, started: re.Pattern[str], settings: Mapping[str, str]
) -> Iterator[int]:
    """Give the port of a server with Interlock that is to run in a folder."""
    given = {
        **_SERVER_SETTINGS,
        "spark.jars": str(interlock.jar_path()),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    options = [text for key, value in given.items() for text in ("--conf", f"{key}={value}")]
    command = ["spark-submit", *options, "--class", main, "spark-internal"]
    with _started(folder, command, started, {}) as port:
        yield port


@contextmanager
def _started(
    folder: Path, command: list[str], started: re.Pattern[str], environment: Mapping[str, str]
) -> Iterator[int]:
    """Run a command of Spark's in a folder until it tells its port, give that, and end it."""
    spark_home = _find_spark_home()
    server = subprocess.Popen(
        [f"{spark_home}/bin/{command[0]}", *command[1:]],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": spark_home, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _port(server, started)
    finally:
        server.terminate()
        server.wait(60)


def _port(server: subprocess.Popen[str], started: re.Pattern[str]) -> int:
    """Read the server's output until it names its port; later output is read and dropped."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if found := started.search(line):
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return int(found[1])
    raise AssertionError("".join(["the server ended before it listened:\n", *said]))


@contextmanager
def connect_session(address: str) -> Iterator[SparkSession]:
    """Open a new session on a server.

    `SparkSession.builder` would refuse: this process may have a classic session as well.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(address).create()
    try:
        yield cast(SparkSession, session)
    finally:
        session.stop()
