"""Each entry point runs, has its class in the history, and stands in `docs/entry-points.md`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest
from interlock.errors import ConcurrentDeleteReadError, InterlockError
from interlock.lab.example import PARTITIONED, Example, Tables
from pyspark.sql import SparkSession

from tests.kit.entry_point_list import ENTRIES, A, B, Z
from tests.kit.entry_points import (
    COMPACTION,
    MAJOR_COMPACTION,
    MUTATE,
    UNTAGGED,
    Entry,
    Place,
    class_under,
    page,
    set_for_now,
)
from tests.kit.support import (
    Table,
    all_files,
    commit_info,
    deltalake_rows,
    latest_version,
    rows,
    sql_race,
    tags,
    versions,
)
from tests.kit.tree import ROOT

PAGE = ROOT / "docs" / "entry-points.md"
NewPlace = Callable[[Example, str], Place]


@pytest.fixture(scope="module")
def new_place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NewPlace:
    """Makes a table under a policy, with a name in the catalog, beside a source of one row."""
    folder = tmp_path_factory.mktemp("places")
    tables = Tables(spark, folder)
    source = Table(folder / "source")
    spark.sql(f"CREATE TABLE {source} (id INT, v STRING, p INT) USING delta")
    spark.sql(f"INSERT INTO {source} VALUES {Z}")
    numbers = itertools.count()
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # for VACUUM

    def make(start: Example, policy: str) -> Place:
        path = tables.fresh(start, {"interlock.policy": policy})
        name = f"t{next(numbers)}"
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
        return Place(name, path, source.path, folder / f"new-{name}", folder / f"checkpoint-{name}")

    return make


def of_class(*classes: str) -> list[Entry]:
    return [entry for entry in ENTRIES if entry.commits[-1][1] in classes]


def identify(entry: Entry) -> str:
    return f"{entry.way}: {entry.code}"


def check(spark: SparkSession, entry: Entry, place: Place, policy: str) -> None:
    table = Table(place.new if entry.creates else place.path)
    entry.prepare(spark, place)
    before = -1 if entry.creates else latest_version(table)
    with set_for_now(spark, {"spark.interlock.defaultPolicy": policy} if entry.creates else {}):
        entry.write(spark, place)
    made = [version for version in versions(table) if version > before]
    history = [commit_info(table, version) for version in made]
    written = [tags(table, version) for version in made]
    assert [info["operation"] for info in history] == [name for name, _ in entry.commits]
    for found, (_, becomes) in zip(written, entry.commits, strict=True):
        if becomes == UNTAGGED:
            assert found == {}
        else:
            assert found["interlock.class"] == class_under(policy, becomes)
            assert found["interlock.policy"] == policy
            assert not {"interlock.winners", "interlock.rules"} & found.keys()
    assert written[-1].get("interlock.replaced") == entry.replaced
    assert deltalake_rows(table) == tuple(sorted(entry.after, key=repr))


@pytest.mark.variant_cases(
    but=[
        "SQL: INSERT*",
        "SQL: UPDATE {t} SET id*",
        "SQL: DELETE FROM {p}*",
        "SQL: MERGE*",
        "SQL: CREATE OR REPLACE TABLE {t} USING delta AS*",
        "SQL: RESTORE*",
        "SQL: ALTER TABLE {p} COMPACT MAJOR",
        "SQL: OPTIMIZE {t}0",
        "DataFrameWriter*",
    ]
)
@pytest.mark.parametrize("entry", ENTRIES, ids=identify)
def test_class_in_the_history(spark: SparkSession, new_place: NewPlace, entry: Entry) -> None:
    policy = "maxcompute_delta"
    check(spark, entry, new_place(entry.start, policy), policy)


@pytest.mark.parametrize(
    "entry", [*of_class(MAJOR_COMPACTION), *of_class(COMPACTION)[::4]], ids=identify
)
def test_class_of_compactions_where_all_are_small_file_merges(
    spark: SparkSession, new_place: NewPlace, entry: Entry
) -> None:
    policy = "maxcompute_transactional"
    check(spark, entry, new_place(entry.start, policy), policy)


@pytest.mark.parametrize("entry", of_class(MUTATE)[::4], ids=identify)  # some of them
def test_standard_tables_refuse_what_mutates(
    spark: SparkSession, new_place: NewPlace, entry: Entry
) -> None:
    place = new_place(entry.start, "maxcompute_standard")
    before = all_files(Table(place.path))
    with pytest.raises(Exception, match="INTERLOCK_OPERATION_NOT_SUPPORTED") as caught:
        entry.write(spark, place)
    if entry.run is None:  # a streaming query wraps it
        assert isinstance(caught.value, InterlockError)
    assert all_files(Table(place.path)) == before


def test_a_restore_counts_as_an_overwrite_for_later_jobs(
    spark: SparkSession, new_place: NewPlace
) -> None:
    table = Table(new_place(PARTITIONED, "maxcompute_delta").path)
    restored, inserted = sql_race(
        spark, table, "RESTORE TABLE {t} TO VERSION AS OF 1", "INSERT INTO {t} VALUES (4, 'd', 2)"
    )
    assert (restored.ok, restored.version, inserted.version) == (True, 3, None)
    assert isinstance(inserted.error, ConcurrentDeleteReadError)
    assert (inserted.error.rule, inserted.error.winner_class) == ("D2", "OVERWRITE")
    assert rows(spark, table) == (A, B)


def test_the_page_lists_every_entry_point() -> None:
    text = page(ENTRIES)
    if os.environ.get("INTERLOCK_WRITE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "INTERLOCK_WRITE_DOCS=1 writes it anew"
