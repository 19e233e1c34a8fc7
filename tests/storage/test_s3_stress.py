"""Processes write one table on an S3 server that is slow and fails: nothing is lost or doubled.

The full form has 16 writers with 200 commits each: in 4 Spark drivers, which two cores can run, and
in 16. `deltalake` commits by the same conditional request as S3A, so it can share a table that no
policy closes to it. It counts a commit whose reply is lost as another writer's and makes it again,
so none of its replies is swallowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration.log_check import Found, check
from integration.writers import Answer, Writer, acknowledged, answers, make_files, run
from tests.kit.driver_process import driver_processes
from tests.kit.ports import HOST
from tests.kit.spark_version import s3_without_database
from tests.storage import s3
from tests.storage.faulty_s3 import Fault, faulty

pytestmark = s3_without_database

POLICY = {"interlock.policy": "maxcompute_transactional"}
COORDINATOR_ONLY = {"interlock.coordinator": "filesystem"}
SECONDS_PER_COMMIT = 10
# A driver that commits files which are there needs little.
SMALL = {"spark.driver.memory": "500m"}


def stress(
    folder: Path,
    hows: Sequence[str],
    *,
    processes: int,
    commits: int,
    properties: dict[str, str],
    seconds: float = 1e6,
) -> Counter[Fault]:
    """Let one writer for each of `hows` commit, compare, and return the faults of S3A's commits.

    Args:
        folder: for everything that is written
        hows: how each writer commits, as `Writer` says
        processes: among which the writers are divided
        commits: of each writer
        properties: of the table
        seconds: after which no commit is begun

    """
    without_lost_replies = set(Fault) - {Fault.REPLY_LOST}
    with (
        s3.start(folder / "s3") as server,
        faulty(server.port) as proxy,
        faulty(server.port, without_lost_replies) as of_deltalake,
    ):
        settings = {
            **SMALL,
            **server.settings(port=proxy.port),
            s3.DELTALAKE_ENDPOINT: f"http://{HOST}:{of_deltalake.port}",
        }
        with driver_processes(folder, *["interlock"] * processes, settings=settings) as drivers:
            table = server.table("t")
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            created = drivers[0].run(
                f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({listed})"
            )
            assert created.error is None, created.message
            make_files(table, range(len(hows) * commits))
            planned = [
                Writer(table.location, n * commits, commits, how, str(folder / f"{n}"), seconds)
                for n, how in enumerate(hows)
            ]
            took = run(drivers, planned, 60 + len(hows) * commits * SECONDS_PER_COMMIT)
        told = answers(planned)
        unknown = [answer.id for answer in told if is_unknown(answer)]
        found = check(table, acknowledged(told), unknown=unknown)
        print(
            f"{dict(Counter(hows))} x {commits} in {processes} processes: {len(told)} commits in "
            f"{took:.0f} s, {len(told) / took:.1f} per second; "
            f"{len(told) - len(acknowledged(told))} refused, {len(unknown)} of them unknown; "
            f"longest wait {max(answer.seconds for answer in told):.1f} s; "
            f"faults of commits: { ({fault.name: n for fault, n in proxy.faults.items()}) }; "
            f"wrong: {found}"
        )
        print(*{answer.error for answer in told if answer.error}, sep="\n")
    assert found == Found()
    return proxy.faults


def is_unknown(answer: Answer) -> bool:
    """Tell whether the writer was told that nobody knows what became of its commit."""
    return "CommitStateUnknown" in (answer.error or "")


def test_two_processes(tmp_path: Path) -> None:
    stress(tmp_path, ["commit"] * 2, processes=2, commits=6, properties=POLICY)


@pytest.mark.soak
@pytest.mark.parametrize("processes", [4, 16])
def test_sixteen_writers(processes: int, tmp_path: Path) -> None:
    hows = ["commit"] * 16
    faults = stress(tmp_path, hows, processes=processes, commits=200, properties=POLICY)
    assert faults.keys() == set(Fault)


@pytest.mark.soak
def test_beside_deltalake(tmp_path: Path) -> None:
    hows = ["deltalake", *["commit"] * 15]
    faults = stress(tmp_path, hows, processes=4, commits=200, properties=COORDINATOR_ONLY)
    assert faults.keys() == set(Fault)
