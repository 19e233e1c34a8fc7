"""`interlock.configure` adds to what the user set, and says what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import Mock

import interlock
import pyspark
import pytest
from interlock import _session as interlock_session
from interlock import _settings as interlock_settings
from pyspark.sql import SparkSession

SPARK = ".".join(pyspark.__version__.split(".")[:2])
DELTA = f"io.delta:delta-spark_{SPARK}_2.13:4.4.0"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
EXTENSION = "io.interlock.spark.InterlockExtension"
CATALOG = "io.interlock.spark.InterlockCatalog"
PROCEDURES = "io.interlock.spark.procedures.InterlockProcedures"


@pytest.fixture(autouse=True)
def no_spark_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a process that has not started Spark, whatever other tests did, without defaults."""
    monkeypatch.setattr(interlock_session, "running_in_spark", lambda: False)
    monkeypatch.setattr(interlock_settings, "running_in_spark", lambda: False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)


def options(settings: dict[str, str] | None = None) -> dict[str, str]:
    """Configure a builder with `settings` and return all its options."""
    builder = SparkSession.builder.config(map=dict(settings or {}))
    return dict(interlock.configure(builder)._options)


def test_a_fresh_builder_gets_everything() -> None:
    assert options() == {
        "spark.jars": str(interlock.jar_path()),
        "spark.jars.packages": DELTA,
        "spark.sql.extensions": f"{DELTA_EXTENSION},{EXTENSION}",
        "spark.sql.catalog.spark_catalog": CATALOG,
        "spark.sql.catalog.interlock": PROCEDURES,
        "spark.interlock.version": interlock.__version__,
    }


def test_configuring_twice_changes_nothing_more() -> None:
    builder = SparkSession.builder
    once = dict(interlock.configure(builder)._options)
    assert dict(interlock.configure(builder)._options) == once


def test_it_appends_to_lists_and_keeps_their_order() -> None:
    found = options(
        {
            "spark.jars": "/z.jar, /a.jar",
            "spark.jars.packages": "org.z:z:1,org.a:a:1",
            "spark.sql.extensions": "z.Extension,a.Extension",
        }
    )
    assert found["spark.jars"] == f"/z.jar,/a.jar,{interlock.jar_path()}"
    assert found["spark.jars.packages"] == f"org.z:z:1,org.a:a:1,{DELTA}"
    expected = f"z.Extension,a.Extension,{DELTA_EXTENSION},{EXTENSION}"
    assert found["spark.sql.extensions"] == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (DELTA_EXTENSION, f"{DELTA_EXTENSION},{EXTENSION}"),
        (f"{DELTA_EXTENSION},z.Z", f"{DELTA_EXTENSION},z.Z,{EXTENSION}"),
        (f"{DELTA_EXTENSION},{EXTENSION},z.Z", f"{DELTA_EXTENSION},{EXTENSION},z.Z"),
        (EXTENSION, f"{DELTA_EXTENSION},{EXTENSION}"),
        (f"{EXTENSION},{DELTA_EXTENSION}", f"{DELTA_EXTENSION},{EXTENSION}"),
    ],
)
def test_the_extension_comes_after_deltas(before: str, after: str) -> None:
    assert options({"spark.sql.extensions": before})["spark.sql.extensions"] == after


def test_delta_is_not_asked_for_twice() -> None:
    assert options({"spark.jars.packages": DELTA})["spark.jars.packages"] == DELTA
    for jar in (f"delta-spark_{SPARK}_2.13-4.4.0.jar", "delta-spark_2.13-4.4.7-vendor-3.jar"):
        assert "spark.jars.packages" not in options({"spark.jars": f"/lib/{jar}"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars.packages", "io.delta:delta-spark_3.9_2.13:4.4.0"),
        ("spark.jars", "/lib/delta-spark_3.9_2.13-4.4.1.jar"),
        ("spark.jars", f"/lib/interlock-spark_{SPARK}_2.13-0.0.1.jar"),
        ("spark.jars.packages", f"io.github.interlock-spark:interlock-spark_{SPARK}_2.13:0.0.1"),
    ],
)
def test_another_version_is_refused_with_what_to_list(key: str, value: str) -> None:
    name = value.rsplit("/", 1)[-1]
    with pytest.raises(interlock.VersionMismatchError, match=name) as caught:
        options({key: value})
    assert "instead" in str(caught.value)


def test_the_users_own_interlock_is_taken() -> None:
    by_package = options({"spark.jars.packages": interlock.maven_coordinates()})
    assert "spark.jars" not in by_package
    jar = f"/lib/{interlock.jar_path().name}"
    assert options({"spark.jars": jar})["spark.jars"] == jar


def test_deltas_catalog_is_replaced_by_the_one_that_extends_it() -> None:
    delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = options({"spark.sql.catalog.spark_catalog": delta})
    assert found["spark.sql.catalog.spark_catalog"] == CATALOG


def test_another_catalog_stays_and_a_warning_says_so() -> None:
    builder = SparkSession.builder.config("spark.sql.catalog.spark_catalog", "my.Catalog")
    with pytest.warns(interlock.ConfigurationWarning, match=r"stays my\.Catalog"):
        interlock.configure(builder)
    assert builder._options["spark.sql.catalog.spark_catalog"] == "my.Catalog"


def test_spark_defaults_count_as_set_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\n\nspark.sql.extensions   z.Extension\nspark.jars=/z.jar\nspark.x\n",
        encoding="utf-8",
    )
    found = options()
    assert found["spark.sql.extensions"] == f"z.Extension,{DELTA_EXTENSION},{EXTENSION}"
    assert found["spark.jars"] == f"/z.jar,{interlock.jar_path()}"


def test_what_pyspark_submit_args_names_counts_as_set_by_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PySpark passes the variable to spark-submit after the builder's settings."""
    defaults = "spark.jars /default.jar\nspark.sql.extensions d.Extension\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    arguments = (
        "--name 'a name' --packages org.z:z:1 --jars=/z.jar -c spark.jars=/not.jar --conf "
        "'spark.sql.extensions=z.Extension' --driver-memory 1g 'pyspark-shell' --jars /none.jar"
    )
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    found = options({"spark.jars.packages": "org.a:a:1"})
    assert found["spark.jars.packages"] == f"org.a:a:1,org.z:z:1,{DELTA}"
    assert found["spark.jars"] == f"/z.jar,{interlock.jar_path()}"
    assert found["spark.sql.extensions"] == f"z.Extension,{DELTA_EXTENSION},{EXTENSION}"
    assert options(found) == found
    wrong = DELTA.replace(SPARK, "3.9")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--packages {wrong} pyspark-shell")
    with pytest.raises(interlock.VersionMismatchError, match=wrong):
        options()


@pytest.mark.parametrize(
    "option",
    [
        "--name pyspark-shell",
        "--verbose",
        "--load-spark-defaults",
        "--name=-",
        "--driver-java-options '-Xss4m -client'",
        "--driver-java-options -cp",
    ],
)
def test_the_application_in_pyspark_submit_args(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = f"{option} --jars /z.jar pyspark-shell --jars /none.jar"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert options()["spark.jars"] == f"/z.jar,{interlock.jar_path()}"
    flag = f"{option} pyspark-shell --jars /none.jar"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", flag)
    assert options()["spark.jars"] == str(interlock.jar_path())


def test_the_client_of_spark_connect_alone() -> None:
    """`pyspark-client` is PySpark without its `core`, and without a Spark installation."""
    code = """import sys
sys.modules["pyspark.core"] = None
import interlock
from pyspark.sql import SparkSession
from pyspark.util import is_remote_only
assert is_remote_only()
builder = interlock.configure(SparkSession.builder.remote("sc://127.0.0.1:1"))
assert set(builder._options) == {"spark.remote"}, builder._options
"""
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_CONF_DIR"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_another_pyspark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    with pytest.raises(interlock.VersionMismatchError) as caught:
        options()
    assert str(caught.value) == (
        f"Interlock {interlock.__version__} works with PySpark 4.0, 4.1, 4.2, and this is "
        "PySpark 4.3.0: pip install 'pyspark==4.2.*'."
    )


@pytest.mark.parametrize("minor", ["4.0", "4.1", "4.2"])
def test_each_pyspark_has_its_jar_and_its_delta(
    minor: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pyspark.__version__", f"{minor}.7")
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / f"interlock-spark_{minor}_2.13-{interlock.__version__}.jar").touch()
    monkeypatch.setattr("interlock._artifacts.__file__", str(tmp_path / "_artifacts.py"))
    found = options()
    assert found["spark.jars"] == str(interlock.jar_path())
    assert f"interlock-spark_{minor}_2.13" in interlock.maven_coordinates()
    assert found["spark.jars.packages"] == f"io.delta:delta-spark_{minor}_2.13:4.4.0"


def test_a_wheel_for_another_spark_says_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("interlock._artifacts.__file__", str(tmp_path / "_artifacts.py"))
    none = f"has no interlock-spark_{SPARK}_2.13-{interlock.__version__}.jar"
    with pytest.raises(interlock.ConfigurationError, match=f"{none}: install it again"):
        interlock.jar_path()
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "interlock-spark_3.9_2.13-0.1.0.jar").touch()
    only = f"{none}, only interlock-spark_3.9_2.13-0.1.0.jar: .*`make wheel`"
    with pytest.raises(interlock.ConfigurationError, match=only):
        interlock.jar_path()


def test_a_builder_of_a_remote_session_stays_as_it_is() -> None:
    builder = SparkSession.builder.remote("sc://example.invalid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interlock.configure(builder)
    assert set(builder._options) == {"spark.remote"}


def test_the_jar_is_the_one_of_this_version() -> None:
    assert interlock.jar_path().name == f"interlock-spark_{SPARK}_2.13-{interlock.__version__}.jar"
    assert interlock.maven_coordinates() == (
        f"io.github.interlock-spark:interlock-spark_{SPARK}_2.13:{interlock.__version__}"
    )


def test_importing_interlock_imports_nothing_heavy() -> None:
    code = "import interlock, sys; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "delta", "numpy", "pandas", "py4j"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("jar", "running", "advice"),
    [
        (True, True, "stop it first"),
        (False, True, "restart Python and call interlock.configure"),
        (False, False, "restart Python and call interlock.configure"),
    ],
    ids=["with the jar", "without it", "stopped"],
)
def test_a_running_spark_without_interlock_is_refused(
    monkeypatch: pytest.MonkeyPatch, jar: bool, running: bool, advice: str
) -> None:
    """After `spark.stop()` its JVM is still there, with the jars that it was started with."""
    context = Mock(**{"getConf.return_value": {}}) if running else None
    jvm = Mock(**{"org.apache.spark.util.Utils.classIsLoadable.return_value": jar})
    monkeypatch.setattr(interlock_session, "running_in_spark", lambda: True)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", context)
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", lambda: None)
    monkeypatch.setattr("pyspark.SparkContext._jvm", jvm)
    with pytest.raises(interlock.ConfigurationError, match=advice):
        options()


def test_a_session_stops_whatever_ends_the_wait_for_its_work() -> None:
    session = Mock(spec=["_jvm", "sparkContext", "stop"])
    stop, finish = session.stop, "org.apache.spark.sql.delta.interlock.log.SessionEnd.finish"
    session._jvm.configure_mock(**{f"{finish}.side_effect": KeyboardInterrupt})
    interlock_session._finish_at_stop(session)
    with pytest.raises(KeyboardInterrupt):
        session.stop()
    stop.assert_called_once_with()


def test_the_demo_starts_where_the_environment_chooses_a_collector() -> None:
    """The JVM refuses a second garbage collector, so ours is left out."""
    code = "from interlock._small_session import JVM_OPTIONS; print(JVM_OPTIONS)"
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "GC" not in done.stdout
