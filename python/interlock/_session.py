"""`configure`: adds Interlock to a Spark session that is about to be built."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from interlock import _arguments, _artifacts, _conversion
from interlock._settings import JARS, PACKAGES, Settings, running_in_spark, spark_has_jar
from interlock.errors import ConfigurationError, ConfigurationWarning, VersionMismatchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
EXTENSIONS = "spark.sql.extensions"
EXTENSION = "io.interlock.spark.InterlockExtension"
CATALOG = "io.interlock.spark.InterlockCatalog"
PROCEDURES = "io.interlock.spark.procedures.InterlockProcedures"

_CATALOG = "spark.sql.catalog.spark_catalog"
_PROCEDURES_CATALOG = "spark.sql.catalog.interlock"
_COORDINATOR_URL = re.compile(r"spark\.interlock\.coordinator\.[^.]+\.url")
_POSTGRES_JAR = re.compile(r"(^|[/:])postgresql[-:]\d[^/]*$")
_VERSION = "spark.interlock.version"
_POLICIES = "spark.interlock.policies."
_MILLIS_AT_STOP = 30_000


def configure(
    builder: SparkSession.Builder, *, policies: Mapping[str, str | os.PathLike[str]] | None = None
) -> SparkSession.Builder:
    """Add Interlock and Delta to the session that `builder` builds, and return the builder.

    Appends to the user's jars, packages and extensions, which the builder, `spark-defaults.conf` or
    the environment variable `PYSPARK_SUBMIT_ARGS` may name, and keeps their order; if the user has
    set another value, it stays, with a `ConfigurationWarning`. Settings made on the builder after
    this call replace what it appended, so it goes last (and after
    `delta.configure_spark_with_delta_pip`, which replaces the packages).

    Calling it twice changes nothing more. If versions do not fit together, a `VersionMismatchError`
    is raised; if the process can no longer be configured, a `ConfigurationError`.

    A session on a Spark Connect server has what its server has: nothing is added, and
    `getOrCreate()` warns of a server without Interlock.

    Args:
        builder: builds the session
        policies: policies of your own by name, each its text or the path of it, which may be on any
            file system that the session knows (docs/policies.md)

    """
    _artifacts.spark_minor()  # refuses another PySpark, for sessions on a server as well
    if not hasattr(builder, "getOrCreate"):
        raise _arguments.refused("builder", "the builder of a SparkSession", builder)
    settings = Settings(builder)
    for name, policy in _arguments.mapping("policies", policies or {}).items():
        settings.set(f"{_POLICIES}{name}", _arguments.path(f"policies[{name!r}]", policy))
    if _is_connect(settings):
        _conversion.install_connect()
    if is_remote_server(settings):
        _check_server(builder)
        return builder
    if running_in_spark():
        _check_running_spark()
    else:
        settings.add_submitted()
        _add_delta(settings)
        _add_interlock(settings)
        _add_postgres(settings)
        _ship_packages(builder)
    _add_extensions(settings)
    _set_unless_other(settings, _CATALOG, CATALOG, replaceable=(DELTA_CATALOG,))
    _set_unless_other(settings, _PROCEDURES_CATALOG, PROCEDURES)
    _set_unless_other(settings, _VERSION, _artifacts.__version__)
    _conversion.install()
    return builder


def _add_delta(settings: Settings) -> None:
    """Ask for Delta's package, unless the user, or the Spark installation, brings Delta.

    Any version will do if it is made for this Spark: the session's start looks at what it has.
    """
    listed = _listed(settings, "delta-spark")
    for key, name in listed:
        made_for = re.search(r"delta-spark_(\d+\.\d+)_", name)
        if made_for and made_for[1] != _artifacts.spark_minor():
            raise VersionMismatchError(
                f"{key} lists {name}, which is made for Spark {made_for[1]}: "
                f"list {_artifacts.delta_coordinates()} instead, or leave it out."
            )
    if not listed and not spark_has_jar("delta-spark"):
        settings.append(PACKAGES, [_artifacts.delta_coordinates()])


def _add_interlock(settings: Settings) -> None:
    """Add this wheel's jar, unless the user lists the same artifact already."""
    ours = {PACKAGES: _artifacts.maven_coordinates(), JARS: _artifacts.jar_name()}
    listed = _listed(settings, "interlock-spark")
    for key, name in listed:
        if re.search(r"\d", name) and not name.endswith(ours[key]):
            raise VersionMismatchError(
                f"Interlock {_artifacts.__version__} needs {ours[key]}, but {key} lists "
                f"{name}: list {ours[key]} instead, or leave it out."
            )
    if not listed:
        settings.append(JARS, [str(_artifacts.jar_path())])


def _listed(settings: Settings, artifact: str) -> list[tuple[str, str]]:
    """Return the packages and jars of an artifact that the user lists, each with its setting."""
    named = [
        (key, PurePosixPath(item).name) for key in (PACKAGES, JARS) for item in settings.items(key)
    ]
    return [(key, name) for key, name in named if artifact in name]


def _add_postgres(settings: Settings) -> None:
    """Ask for the driver of Postgres if a coordinator needs it."""
    if any(_COORDINATOR_URL.fullmatch(key) for key in settings.all_keys()):
        add_postgres_driver(settings)


def add_postgres_driver(settings: Settings) -> None:
    """Ask for the driver of Postgres, unless the user brings one."""
    given = [item for key in (PACKAGES, JARS) for item in settings.items(key)]
    if not any(_POSTGRES_JAR.search(item) for item in given):
        settings.append(PACKAGES, [_artifacts.POSTGRES_COORDINATES])


def _ship_packages(builder: SparkSession.Builder) -> None:
    """Let the builder's session send the jars of `spark.jars.packages` to its executors.

    Spark's launcher adds them to `spark.jars` of the JVM, but PySpark then overwrites that with the
    builder's value. So the launcher's list is copied to the builder first.
    """
    build = builder.getOrCreate

    def get_or_create() -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors.exceptions.captured import install_exception_handler

        # PySpark itself does so after the first session has started, which may be refused.
        install_exception_handler()
        settings = Settings(builder)
        if not running_in_spark():
            settings.add_submitted()
        with settings.winning():
            if not running_in_spark() and not _is_connect(settings):
                options: dict[str, Any] = builder._options
                SparkContext._ensure_initialized(conf=SparkConf().setAll(list(options.items())))
                jvm: Any = SparkContext._jvm
                settings.set(JARS, jvm.System.getProperty(JARS))
            session = build()
        _finish_at_stop(session)
        return session

    builder.getOrCreate = get_or_create  # type: ignore[method-assign]


def _finish_at_stop(session: SparkSession) -> None:
    """Let `session.stop()` wait for background checkpoints, and close coordinators."""
    jvm: Any = getattr(session, "_jvm", None)
    if jvm is None or hasattr(session, "_interlock_stop"):
        return
    stop = session.stop

    def finish_and_stop() -> None:
        try:
            if session.sparkContext._jsc is not None:
                jvm.org.apache.spark.sql.delta.interlock.log.SessionEnd.finish(_MILLIS_AT_STOP)
        finally:
            stop()

    session._interlock_stop = stop  # type: ignore[attr-defined]
    session.stop = finish_and_stop  # type: ignore[method-assign]


def _add_extensions(settings: Settings) -> None:
    """Add Delta's extension and then Interlock's; in the other order Delta's statements fail."""
    found = settings.items(EXTENSIONS)
    if EXTENSION in found and DELTA_EXTENSION not in found[: found.index(EXTENSION)]:
        found.remove(EXTENSION)
        settings.set(EXTENSIONS, ",".join(found))
    settings.append(EXTENSIONS, [DELTA_EXTENSION, EXTENSION])


def _set_unless_other(
    settings: Settings, key: str, value: str, *, replaceable: tuple[str, ...] = ()
) -> None:
    found = settings.value(key)
    if found is None or found in replaceable:
        settings.set(key, value)
    elif found != value:
        warnings.warn(
            f"{key} stays {found}, as you set it; Interlock would set {value}.",
            ConfigurationWarning,
            stacklevel=3,
        )


def _check_running_spark() -> None:
    """Refuse a running Spark process without the settings that must be given at its start."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and EXTENSION in context.getConf().get(EXTENSIONS, ""):
        return
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    loadable = jvm.org.apache.spark.util.Utils.classIsLoadable
    if not loadable(EXTENSION):
        raise ConfigurationError(
            "Spark already runs in this process without Interlock's jar and cannot load more: "
            "restart Python and call interlock.configure before the first getOrCreate(). "
            f"Under spark-submit, start it with --jars {_artifacts.jar_path()} "
            f"--packages {_artifacts.delta_coordinates()}."
        )
    if not loadable(DELTA_EXTENSION):
        raise VersionMismatchError(
            "Delta is not on the class path of the Spark that is running: "
            f"start it with --packages {_artifacts.delta_coordinates()}."
        )
    if context is not None:
        raise ConfigurationError(
            "A Spark session without Interlock is running in this process: "
            "stop it first (spark.stop()), or configure it before its getOrCreate()."
        )


def _is_connect(settings: Settings) -> bool:
    mode = settings.value("spark.api.mode") or os.environ.get("SPARK_API_MODE", "")
    return bool(_remote(settings)) or mode.lower() == "connect"


def _remote(settings: Settings) -> str:
    return settings.value("spark.remote") or os.environ.get("SPARK_REMOTE", "")


def is_remote_server(settings: Settings) -> bool:
    """Tell whether the session is one of a Spark Connect server that somebody else runs."""
    return _remote(settings).startswith("sc://")


def _check_server(builder: SparkSession.Builder) -> None:
    """Let the builder warn of a server without Interlock, once it has a session there."""
    build = builder.getOrCreate

    def get_or_create() -> SparkSession:
        session = build()
        if EXTENSION not in (session.conf.get(EXTENSIONS, "") or ""):
            warnings.warn(
                "The Spark Connect server of this session does not have Interlock: its jar, "
                "extensions and catalog belong to the configuration of the server "
                f"({JARS}, {EXTENSIONS}, {_CATALOG}).",
                ConfigurationWarning,
                stacklevel=2,
            )
        return session

    builder.getOrCreate = get_or_create  # type: ignore[method-assign]
