"""Two drivers, each a process of its own, on one table: the cells come out as in one JVM.

The later job stands at its commit in one process while the earlier one runs in the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.support import Table, deltalake_rows, latest_version, tags

pytestmark = pytest.mark.variant

INSERT_10 = "INSERT INTO {t} VALUES (10, 'i')"
INSERT_20 = "INSERT INTO {t} VALUES (20, 'j')"
OVERWRITE_100 = "INSERT OVERWRITE {t} VALUES (100, 'x')"
OVERWRITE_200 = "INSERT OVERWRITE {t} VALUES (200, 'y')"
UPDATE_1 = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE_2 = "DELETE FROM {t} WHERE id = 2"
OPTIMIZE = "OPTIMIZE {t}"
MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
START = ((1, "a"), (2, "b"), (3, "c"))


@dataclass(frozen=True)
class Case:
    """A cell with its two statements, and what must come of them."""

    cell: str
    earlier: str
    later: str
    error: str | None
    rows: tuple[tuple[object, ...], ...]

    @property
    def policy(self) -> str:
        return "maxcompute_delta" if self.cell.startswith("D") else "maxcompute_transactional"


CASES = [
    Case("D1", OVERWRITE_100, OVERWRITE_200, None, ((200, "y"),)),
    Case("D6", INSERT_10, OVERWRITE_200, None, ((200, "y"),)),
    Case("D7", INSERT_10, INSERT_20, "ConcurrentAppendError", (*START, (10, "i"))),
    Case("D9", INSERT_10, OPTIMIZE, None, (*START, (10, "i"))),
    Case("D11", UPDATE_1, OVERWRITE_200, None, ((200, "y"),)),
    Case("D14", UPDATE_1, MINOR, None, ((1, "U"), *START[1:])),
    Case("D18", MINOR, DELETE_2, None, (START[0], START[2])),
    Case("D20", MINOR, MAJOR, None, START),
    Case("T6", INSERT_10, INSERT_20, None, (*START, (10, "i"), (20, "j"))),
    Case("T11", UPDATE_1, DELETE_2, "ConcurrentAppendError", ((1, "U"), *START[1:])),
    Case("T15", OPTIMIZE, DELETE_2, "ConcurrentDeleteReadError", START),
]
NAMED = ("D1", "D6", "D7", "D14", "D18", "T6", "T15")


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DriverProcess]]:
    with driver_processes(tmp_path_factory.mktemp("drivers"), "interlock", "interlock") as both:
        yield both


@pytest.fixture(scope="module")
def originals(
    drivers: list[DriverProcess], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The documents' example at version 2, one for each policy, for tests to copy."""
    folder = tmp_path_factory.mktemp("originals")
    made = {policy: folder / policy for policy in sorted({case.policy for case in CASES})}
    for policy, path in made.items():
        for statement in (
            "CREATE TABLE {t} (id INT, v STRING) USING delta "
            f"TBLPROPERTIES ('interlock.policy' = '{policy}', "
            "'delta.enableDeletionVectors' = 'true')",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'c')",
        ):
            assert drivers[0].run(statement.format(t=Table(path))).error is None
    return made


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.cell, marks=[] if case.cell in NAMED else pytest.mark.soak)
        for case in CASES
    ],
)
def test_cell(
    drivers: list[DriverProcess], originals: dict[str, Path], tmp_path: Path, case: Case
) -> None:
    one, other = drivers
    table = Table(tmp_path / "table")
    shutil.copytree(originals[case.policy], table.path)
    other.hold(case.later.format(t=table))
    assert one.run(case.earlier.format(t=table)).error is None
    later = other.open()

    assert later.error == case.error, later.message
    assert deltalake_rows(table) == tuple(sorted(case.rows, key=repr))
    if case.error is None:
        assert latest_version(table) == 4
        expected = {"interlock.winners": "3", "interlock.rules": case.cell}
        assert expected.items() <= tags(table, 4).items()
    else:
        assert latest_version(table) == 3
        assert (later.rule, later.winner_version) == (case.cell, 3)


def test_both_read_what_the_other_wrote(drivers: list[DriverProcess], tmp_path: Path) -> None:
    """Statements in turn, without a race, follow each other without a conflict."""
    one, other = drivers
    table = Table(tmp_path / "table")
    assert one.run(
        f"CREATE TABLE {table} (id INT) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
    ) == one.run("SELECT 1")
    for driver in (one, other, one, other):
        assert driver.run(f"INSERT INTO {table} SELECT count(*) FROM {table}").error is None
    assert deltalake_rows(table) == ((0,), (1,), (2,), (3,))
