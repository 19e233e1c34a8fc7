"""Spark sessions with Interlock: one in this process, and one on a server of its own."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import interlock
from interlock.artifacts import DELTA_COORDINATES
from interlock.lab.session import SMALL_SESSION
from interlock.session import DELTA_EXTENSION
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

# Soaks of very many files need more memory than all else.
SMALL = {
    **SMALL_SESSION,
    "spark.driver.memory": os.environ.get(
        "INTERLOCK_DRIVER_MEMORY", SMALL_SESSION["spark.driver.memory"]
    ),
}
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S+:(\d+)")
_SERVER_SETTINGS = {
    **SMALL_SESSION,
    "spark.plugins": "org.apache.spark.interlock.InterlockPlugin",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.jars.packages": DELTA_COORDINATES,
}


def stock(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add Delta, as its own documentation does, and no Interlock."""
    from delta import configure_spark_with_delta_pip

    return configure_spark_with_delta_pip(
        builder.config("spark.sql.extensions", DELTA_EXTENSION).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )


@contextmanager
def classic_session(warehouse: Path, **settings: str) -> Iterator[SparkSession]:
    """Start a small session in this process, and stop it."""
    builder = (
        SparkSession.builder.appName("interlock tests")
        .config(map={**SMALL, **settings})
        .config("spark.sql.warehouse.dir", str(warehouse))
    )
    session = interlock.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        # The JVM goes on to the next module: Delta would keep the tables of this one for an hour.
        jvm: Any = session._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        session.stop()


@contextmanager
def connect_server(folder: Path, **settings: str) -> Iterator[str]:
    """Start a Spark Connect server with Interlock's plugin, give its address, and end it."""
    given = {
        **_SERVER_SETTINGS,
        "spark.jars": str(interlock.jar_path()),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    options = [text for key, value in given.items() for text in ("--conf", f"{key}={value}")]
    spark_home = _find_spark_home()
    server = subprocess.Popen(
        [f"{spark_home}/bin/spark-submit", *options, "--class", _SERVER, "spark-internal"],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": spark_home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield f"sc://127.0.0.1:{_port(server)}"
    finally:
        server.terminate()
        server.wait(60)


def _port(server: subprocess.Popen[str]) -> int:
    """Read what the server says until it tells its port, and let it talk on."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if started := _STARTED.search(line):
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return int(started[1])
    raise AssertionError("".join(["the server ended before it listened:\n", *said]))


@contextmanager
def connect_session(address: str) -> Iterator[SparkSession]:
    """Open a session of its own on a server.

    `SparkSession.builder` would refuse: this process may have a classic session as well.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(address).create()
    try:
        yield cast(SparkSession, session)
    finally:
        session.stop()
