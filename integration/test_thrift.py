"""A Thrift server, to which users send SQL and nothing else: what they can and cannot do."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from tests.kit.sessions import classic_session, thrift_server
from tests.kit.support import Table, deltalake_rows, tags, versions
from tests.kit.tree import ROOT

SECRET = "first line of a file that is nobody's business"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("thrift")
    # Sessions of this server do not see what comes by --jars or --packages, Delta's jars neither.
    given = {
        "spark.driver.extraClassPath": class_path(),
        "spark.jars": "",
        "spark.jars.packages": "",
    }
    with thrift_server(folder, **given) as url:
        yield url


def class_path() -> str:
    """Return Delta's and Interlock's jars, as a session has them."""
    with classic_session() as session:
        urls = session.sparkContext.getConf().get("spark.jars", "").split(",")
    ours = re.compile(r"(delta-spark|delta-storage|interlock-spark)[^/]*$")
    return os.pathsep.join(url.removeprefix("file://") for url in urls if ours.search(url))


def beeline(url: str, *statements: str) -> tuple[int, str]:
    """Run statements as one user's session; return the exit status and all that is said."""
    command = [f"{_find_spark_home()}/bin/spark-class", "org.apache.hive.beeline.BeeLine"]
    scripts = [text for statement in statements for text in ("-e", f"{statement};")]
    done = subprocess.run(
        [*command, "-u", url, "-n", "reader", *scripts],
        env={**os.environ, "SPARK_HOME": _find_spark_home()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def table(server: str, tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = Table(tmp_path_factory.mktemp("tables") / "table")
    with_policy = "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
    status, said = beeline(
        server,
        f"CREATE TABLE {made} (id INT, v STRING) USING delta {with_policy}",
        f"INSERT INTO {made} VALUES (1, 'a')",
    )
    assert status == 0, said
    assert tags(made, 1)["interlock.class"] == "APPEND"
    return made


def test_no_password_goes_where_sql_says(server: str, table: Table) -> None:
    before = versions(table)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"jdbc:postgresql://127.0.0.1:{listener.getsockname()[1]}/x"
        key = "spark.interlock.coordinator.elsewhere"
        status, said = beeline(
            server,
            f"SET {key}.url={url}",
            f"SET {key}.user=etl",
            f"SET {key}.passwordFile=/etc/hostname",
            f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = 'elsewhere')",
        )
        assert status != 0
        assert "INTERLOCK_COORDINATOR_SETTING" in said
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert versions(table) == before


def test_no_file_is_shown_as_a_policy(server: str, table: Table, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(f"{SECRET}\n", encoding="utf-8")
    status, said = beeline(
        server,
        f"SET spark.interlock.policies.own={file}",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = 'own')",
    )
    assert status != 0
    assert "INTERLOCK_MALFORMED_POLICY" in said
    assert SECRET not in said


def test_no_session_has_rules_of_its_own_for_a_table(
    server: str, table: Table, tmp_path: Path
) -> None:
    """The table keeps the digest of its policy, so a session cannot judge by other rules."""
    status, rules = beeline(server, "CALL interlock.policies()")
    assert status == 0
    assert "maxcompute_delta" in rules
    lenient = tmp_path / "lenient"
    source = ROOT / "jvm/rules/src/main/resources/io/interlock/policies"
    text = (source / "row_level.policy").read_text(encoding="utf-8")
    lenient.write_text(text.replace("row_level", "maxcompute_delta"), encoding="utf-8")
    set_rules = f"SET spark.interlock.policies.maxcompute_delta={lenient}"
    status, said = beeline(server, set_rules, f"INSERT INTO {table} VALUES (2, 'b')")
    assert status != 0
    assert "INTERLOCK_" in said
    status, said = beeline(server, f"INSERT INTO {table} VALUES (3, 'c')")
    assert status == 0, said
    assert deltalake_rows(table) == ((1, "a"), (3, "c"))
