"""`interlock.configure` brings the driver of Postgres where a coordinator needs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock import _session as interlock_session
from interlock import _settings as interlock_settings

from tests.tables.test_configure import DELTA, options

POSTGRES = "org.postgresql:postgresql:42.7.10"
URL = {"spark.interlock.coordinator.main.url": "jdbc:postgresql://db/interlock"}


@pytest.fixture(autouse=True)
def no_spark_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a process that has not started Spark, whatever other tests did, without defaults."""
    for module in (interlock_session, interlock_settings):
        monkeypatch.setattr(module, "running_in_spark", lambda: False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def packages(settings: dict[str, str]) -> str:
    return options(settings).get("spark.jars.packages", "")


def test_a_coordinator_brings_the_driver() -> None:
    assert packages(URL) == f"{DELTA},{POSTGRES}"
    assert packages({**URL, "spark.jars.packages": "org.a:a:1"}) == f"org.a:a:1,{DELTA},{POSTGRES}"


@pytest.mark.parametrize(
    "key",
    [
        "spark.interlock.defaultPolicy",
        "spark.interlock.coordinator.main.user",
        "spark.interlock.coordinator.url",
        "spark.interlock.coordinators.main.url",
    ],
)
def test_nothing_else_brings_it(key: str) -> None:
    assert packages({key: "x"}) == DELTA


@pytest.mark.parametrize(
    "given",
    [
        {"spark.jars.packages": "org.postgresql:postgresql:42.7.4"},
        {"spark.jars": "/lib/postgresql-42.7.4.jar"},
    ],
    ids=["package", "jar"],
)
def test_the_users_own_driver_is_taken(given: dict[str, str]) -> None:
    assert POSTGRES not in packages({**URL, **given})


def test_a_jar_of_another_name_is_not_the_driver() -> None:
    assert POSTGRES in packages({**URL, "spark.jars": "/lib/postgresql-helpers.jar"})
