"""The documents' cells and their variants, live; and the lab itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interlock import lab
from interlock.cli import main
from interlock.lab import html, report, variants
from interlock.lab.cases import Case, case, case_of
from interlock.lab.documents import MATRICES, is_open
from interlock.lab.example import Tables
from interlock.lab.model import Outcome
from interlock.lab.reader import independent_reader
from interlock.lab.runner import run_case, show
from pyspark.sql import SparkSession

CELLS = [
    case_of(policy, cell)
    for policy in lab.DEFAULT_POLICIES
    for cell in MATRICES[policy].cells
    if not is_open(cell)
]
# The variants that run every time; the others run with the full product.
NAMED = (
    *("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P11", "P12"),
    *("D2-truncate", "D6-truncate-empty", "D8-matches-nothing", "D13-disjoint-files"),
    *("D6-no-deletion-vectors", "D13-no-deletion-vectors", "D1-two-sessions", "D7-two-sessions"),
)
QUICK = [case for case in variants.ALL if case.id in NAMED]
REFUSED = [case(cell, "maxcompute_standard") for cell in ("T3", "T9")]

# The rows that the documents' worked examples end with.
WORKED = {
    "D1": "{200y}",
    "D2": "{100x}",
    "D3": "{100x}",
    "D4": "{100x}",
    "D6": "{200y}",
    "D7": "{1a, 10i, 2b, 3c}",
    "D8": "{1a, 10i, 2b, 3c}",
    "D9": "{1a, 10i, 2b, 3c}",
    "D11": "{200y}",
    "D12": "{1U, 2b, 3c}",
    "D13": "{1U, 2b, 3c}",
    "D16": "{200y}",
    "D17": "{1a, 2b, 20j, 3c}",
    "D19": "{1a, 2b, 3c}",
    "T1": "{200y}",
    "T2": "{100x, 20j}",
    "T3": "{100x}",
    "T4": "{100x}",
    "T5": "{200y}",
    "T6": "{1a, 10i, 2b, 20j, 3c}",
    "T7": "{1a, 10i, 2b, 3c}",
    "T8": "{1a, 10i, 2b, 3c}",
    "T9": "{200y}",
    "T10": "{1U, 2b, 20j, 3c}",
    "T11": "{1U, 2b, 3c}",
    "T12": "{1U, 2b, 3c}",
    "T13": "{200y}",
    "T14": "{1a, 2b, 20j, 3c}",
    "T15": "{1a, 2b, 3c}",
    "T16": "{1a, 2b, 3c}",
}


def check(spark: SparkSession, tables: Tables, case: Case) -> None:
    result = run_case(spark, tables, case, reader=independent_reader())
    assert result.problems == ()


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.id)
def test_cell(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"standard-{case.id}")
def test_what_a_standard_table_refuses(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.id)
def test_variant(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.soak
@pytest.mark.parametrize("sessions", [1, 2], ids=["one-session", "two-sessions"])
@pytest.mark.parametrize("deletion_vectors", ["on", "off"], ids=["vectors", "no-vectors"])
@pytest.mark.parametrize(
    "case", [*CELLS, *variants.PARTITIONS, *variants.STATEMENTS], ids=lambda case: case.id
)
def test_full_product(
    spark: SparkSession, tables: Tables, case: Case, deletion_vectors: str, sessions: int
) -> None:
    check(
        spark,
        tables,
        replace(case, deletion_vectors=deletion_vectors, sessions=sessions),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.id)
def test_the_oracle_says_what_the_worked_example_says(case: Case) -> None:
    assert show(case.rows) == WORKED[case.id]


def test_all_named_variants_run() -> None:
    assert {case.id for case in QUICK} == set(NAMED)


def test_every_cell_is_in_the_matrices() -> None:
    cells = MATRICES["maxcompute_delta"].cells
    assert [cell.id for cell in cells] == [f"D{n}" for n in range(1, 26)]
    assert sum(cell.outcome is Outcome.BOTH for cell in cells) == 12
    assert [cell.id for cell in cells if is_open(cell)] == [
        *("D5", "D10", "D14", "D15", "D18"),
        *("D20", "D21", "D22", "D23", "D24", "D25"),
    ]
    cells = MATRICES["maxcompute_transactional"].cells
    assert [cell.id for cell in cells] == [f"T{n}" for n in range(1, 17)]
    assert not any(map(is_open, cells))


def test_the_lab_finds_stock_delta_wrong(spark: SparkSession, tmp_path: Path) -> None:
    run = lab.run(spark, tmp_path, policies=["maxcompute_delta"], cells=["D3", "D7"], rules="stock")
    (found,) = run
    cells = MATRICES["maxcompute_delta"].cells
    marks = {cell.id: found.mark(cell) for cell in cells}
    assert marks["D3"] is report.Mark.OK
    assert marks["D7"] is report.Mark.WRONG
    assert marks["D1"] is report.Mark.NOT_RUN
    assert marks["D5"] is report.Mark.OPEN

    text = report.as_text(found)
    assert "D7 fail/both WRONG" in text
    assert "must be fail, is both" in text
    assert json.loads(json.dumps(report.as_json(found)))["wrong"] == 1
    assert '<td class="WRONG"><b>D7</b>' in html.as_html([found], "versions")


@pytest.mark.parametrize("policy", lab.DEFAULT_POLICIES)
def test_the_policies_of_the_jar_agree_with_the_documents(spark: SparkSession, policy: str) -> None:
    names = {
        "IO": "OVERWRITE",
        "II": "APPEND",
        "UD": "MUTATE",
        "MIN": "COMPACT_MINOR",
        "MAJ": "COMPACT_MAJOR",
        "SFM": "MERGE_SMALLFILES",
    }
    jvm: Any = spark._jvm
    policies = json.loads(jvm.io.interlock.spark.Inspect.policiesJson())
    (found,) = (p for p in policies if p["name"] == policy)
    verdicts = {cell["id"]: cell for cell in found["cells"]}
    for cell in MATRICES[policy].cells:
        assert verdicts[cell.id]["earlier"] == names[cell.earlier.name]
        assert verdicts[cell.id]["later"] == names[cell.later.name]
        if not is_open(cell):
            fails = verdicts[cell.id]["verdict"] == "FAIL"
            assert fails == (cell.outcome is Outcome.FAIL), cell.id


@pytest.fixture
def command(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """The command line, on the session of this module."""

    @contextmanager
    def session() -> Iterator[tuple[SparkSession, Path]]:
        yield spark, tmp_path

    for name in ("lab", "policies"):
        monkeypatch.setattr(f"interlock.commands.{name}.small_session", session)
    return lambda *arguments: main(arguments)


def test_the_command_succeeds_where_all_is_right(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "lab.html"
    assert command("lab", "--cell", "d2", "d5", "--json", "--html", str(page)) == 0
    (matrix,) = json.loads(capsys.readouterr().out)["matrices"]
    marks = {cell["id"]: cell["mark"] for cell in matrix["cells"]}
    assert (marks["D2"], marks["D5"], marks["D7"]) == ("ok", "open", "-")
    assert "<b>D2</b> fail / fail <b>ok</b>" in page.read_text(encoding="utf-8")


def test_the_command_fails_where_a_cell_is_wrong(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("lab", "--stock", "--cell", "D7") == 1
    assert "D7 fail/both WRONG" in capsys.readouterr().out


def test_the_command_knows_its_cells(command: Callable[..., int]) -> None:
    with pytest.raises(SystemExit) as caught:
        command("lab", "--policy", "maxcompute_delta", "--cell", "T1")
    assert caught.value.code == 2


def test_the_policies_are_printed(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("policies") == 0
    printed = capsys.readouterr().out
    assert "maxcompute_delta" in printed
    assert "D6 REPLACE_LIVE" in printed
