"""`docs/choosing-a-policy.md`: each cell of its table is the end of a race, live."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

from tests.kit.support import deltalake_rows, latest_version, make_table, rows, sql_race
from tests.kit.tree import ROOT

PAGE = (ROOT / "docs" / "choosing-a-policy.md").read_text(encoding="utf-8")
STOCK = "stock Delta"

UPDATE_1 = "UPDATE {t} SET v = 'u' WHERE id = 1"
UPDATE_2 = "UPDATE {t} SET v = 'u' WHERE id = 2"
INSERT = "INSERT INTO {t} VALUES (9, 'i')"
OPTIMIZE = "OPTIMIZE {t}"
START = ((1, "a"), (2, "b"), (3, "c"))


class Race(NamedTuple):
    """Two statements on `START` in two files, and the rows where both commit, and the earlier one.

    Attributes:
        both_unordered: where a policy lets a blind INSERT count as the later one, if that matters

    """

    earlier: str
    later: str
    both: Rows
    one: Rows
    both_unordered: Rows | None = None


BOTH_UPDATED = ((1, "u"), (2, "u"), (3, "c"))
ONE_UPDATED = ((1, "u"), (2, "b"), (3, "c"))
RACES = {
    "UPDATE after an UPDATE of another row in the same file": Race(
        UPDATE_1, UPDATE_2, BOTH_UPDATED, ONE_UPDATED
    ),
    "UPDATE after OPTIMIZE of its file": Race(OPTIMIZE, UPDATE_1, ONE_UPDATED, START),
    "OPTIMIZE after an UPDATE of one of its files": Race(
        UPDATE_1, OPTIMIZE, ONE_UPDATED, ONE_UPDATED
    ),
    "INSERT after an INSERT": Race(
        INSERT, "INSERT INTO {t} VALUES (8, 'i')", (*START, (8, "i"), (9, "i")), (*START, (9, "i"))
    ),
    "INSERT after OPTIMIZE": Race(OPTIMIZE, INSERT, (*START, (9, "i")), START),
    "UPDATE after an INSERT of rows that it selects": Race(
        INSERT,
        "UPDATE {t} SET v = 'u' WHERE id > 2",
        (*START[:2], (3, "u"), (9, "i")),
        (*START, (9, "i")),
    ),
    "INSERT OVERWRITE after an INSERT": Race(
        INSERT,
        "INSERT OVERWRITE {t} VALUES (7, 'o')",
        ((7, "o"),),
        (*START, (9, "i")),
        both_unordered=((7, "o"), (9, "i")),
    ),
}


def cells() -> dict[tuple[str, str], str]:
    """What the page says of each race under each policy."""
    (table,) = re.findall(r"^\| later job, after \|.*?(?=^$)", PAGE, re.DOTALL | re.MULTILINE)
    head, _, *lines = (
        [text.strip(" `") for text in line.strip("|").split("|")] for line in table.splitlines()
    )
    return {
        (name, policy): said
        for name, *found in lines
        for policy, said in zip(head[1:], found, strict=True)
    }


CELLS = cells()


def test_every_race_of_the_page_is_run() -> None:
    assert {name for name, _ in CELLS} == RACES.keys()


@pytest.mark.variant_cases(but=["*-row_level"])
@pytest.mark.parametrize(("name", "policy"), CELLS)
def test_the_later_job_ends_as_the_page_says(
    spark: SparkSession, tmp_path: Path, name: str, policy: str
) -> None:
    race = RACES[name]
    table = make_table(spark, tmp_path / "t", policy=None if policy == STOCK else policy)
    before = latest_version(table)
    earlier, later = sql_race(spark, table, race.earlier, race.later)
    assert earlier.error is None
    assert CELLS[name, policy] == ("commits" if later.error is None else "fails"), later.error
    assert latest_version(table) == before + (1 if later.error else 2)
    expected = race.one if later.error else race.both
    if race.both_unordered and policy in ("write_serializable", "row_level"):
        expected = race.both_unordered
    assert rows(spark, table) == deltalake_rows(table) == expected
