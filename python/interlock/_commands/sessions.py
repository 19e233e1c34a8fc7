"""The Spark session, or only the JVM, of a command."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

from interlock._diagnosis import told_by
from interlock._small_session import SMALL_SESSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from interlock._tables import Table

TABLE = "a name as in SQL, or a path with a slash, as ./trips"


@contextmanager
def quiet_start() -> Iterator[None]:
    """Hold back what Spark and its package resolver write to standard error, unless they fail."""
    sys.stderr.flush()
    shown = os.dup(2)
    with TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(shown, kept.read())
            raise
        finally:
            os.dup2(shown, 2)
            os.close(shown)


@contextmanager
def small_session() -> Iterator[tuple[SparkSession, Path]]:
    """Start a small Spark with Interlock and a temporary folder, and remove both at the end."""
    from pyspark.sql import SparkSession

    from interlock._session import configure

    with TemporaryDirectory(prefix="interlock-") as folder:
        builder = SparkSession.builder.appName("interlock").config(map=dict(SMALL_SESSION))
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        with quiet_start():
            spark = configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark, Path(folder)
        finally:
            spark.stop()


def example(command: str, *others: str) -> str:
    """Show how a command is called."""
    return f"Example: {' '.join(['interlock', command, '/data/trips', *others])}"


def add_table(parser: argparse.ArgumentParser) -> None:
    """Declare the table of a command."""
    parser.add_argument("table", metavar="TABLE", help=TABLE)


def chosen_table(spark: SparkSession, name: str) -> Table:
    """Take a relative path too, if it names a table's folder here and cannot be a name."""
    from interlock._tables import table

    is_here = "/" in name and os.path.isdir(os.path.join(name, "_delta_log"))
    if is_here and getattr(spark, "_jvm", None) is not None:
        name = os.path.abspath(name)
    return table(spark, name)


def add_conf(parser: argparse.ArgumentParser) -> None:
    """Declare the option that sets up the user's session."""
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of the session, over those of spark-defaults.conf; may be repeated; "
        "spark.remote=sc://HOST for one on a Spark Connect server",
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"not KEY=VALUE: {text}")
    return key, value


@contextmanager
def user_session(
    conf: Sequence[tuple[str, str]], *, postgres: bool = False
) -> Iterator[SparkSession]:
    """Start a session with the user's settings, and settings for a small one as defaults.

    Args:
        conf: the user's settings
        postgres: whether the session needs the driver of Postgres

    """
    from pyspark.sql import SparkSession

    from interlock._session import add_postgres_driver, configure, is_remote_server
    from interlock._settings import Settings

    builder = SparkSession.builder.appName("interlock").config(map=dict(conf))
    settings = Settings(builder)
    with quiet_start():
        if not is_remote_server(settings):
            for key, value in SMALL_SESSION.items():
                if settings.value(key) is None:
                    settings.set(key, value)
            if postgres:
                add_postgres_driver(settings)
        spark = configure(builder).getOrCreate()
    try:
        if not is_remote_server(settings):
            spark.sparkContext.setLogLevel("OFF")
        yield spark
    finally:
        spark.stop()


def complain(command: str, error: Exception) -> int:
    """Print why a command failed, and return its exit status."""
    print(f"interlock {command}: {told_by(error)}", file=sys.stderr)
    return 1


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from logging the errors that it raises."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def bare_jvm(conf: Mapping[str, str]) -> Iterator[Any]:
    """Start Spark's JVM with Interlock and the packages of `conf`, and no session in it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from interlock._session import configure
    from interlock._settings import Settings

    builder: Any = SparkSession.builder.config(map={**SMALL_SESSION, **conf})
    with quiet_start(), Settings(configure(builder)).winning():
        options = builder._options
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(options.items())))
    jvm: Any = SparkContext._jvm
    logging = jvm.org.apache.logging.log4j
    logging.core.config.Configurator.setRootLevel(logging.Level.OFF)
    yield jvm
