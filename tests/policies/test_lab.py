"""The documents' cells and their variants, live; and the lab itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from interlock import lab
from interlock._cli import main
from interlock.lab import html, report, variants
from interlock.lab.cases import Case
from interlock.lab.cells import case, cases_of
from interlock.lab.documents import MATRICES
from interlock.lab.example import Tables
from interlock.lab.model import Outcome
from interlock.lab.reader import independent_reader
from interlock.lab.runner import run_case, show
from pyspark.sql import SparkSession

CELLS = [
    case
    for policy in ("maxcompute_delta", "maxcompute_transactional")
    for cell in MATRICES[policy].cells
    for case in cases_of(policy, cell)
]
# The Delta document's cells, without those that write_serializable shares with serializable.
DELTA_CELLS = [
    case
    for policy in ("serializable", "write_serializable", "row_level")
    for cell in MATRICES[policy].cells
    if policy != "write_serializable" or cell.id in ("W2", "W4")
    for case in cases_of(policy, cell)
]
# The variants that run every time, beside those of the traps; the others run with the full product.
NAMED = (
    *("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12"),
    *("P6-reversed", "P9-whole-table", "P9-whole-table-reversed", "P10-reversed", "P10-disjoint"),
    *("D2-truncate", "D13-disjoint-files", "D18-optimize", "D14-merge-smallfiles"),
    *("T8-compact-major", "T16-optimize", "D18-no-deletion-vectors", "D23-no-deletion-vectors"),
)
QUICK = [case for case in variants.ALL if case.id in NAMED]
REFUSED = [case(cell, "maxcompute_standard") for cell in ("T3", "T9")]

# The rows that the documents' worked examples end with, and how many versions change rows.
WORKED = {
    "D1": ("{200y}", 4),
    "D2": ("{100x}", 3),
    "D3": ("{100x}", 3),
    "D4": ("{100x}", 3),
    "D5": ("{100x}", 3),
    "D6": ("{200y}", 4),
    "D7": ("{1a, 10i, 2b, 3c}", 3),
    "D8": ("{1a, 10i, 2b, 3c}", 3),
    "D9": ("{1a, 10i, 2b, 3c}", 3),
    "D10": ("{1a, 10i, 2b, 3c}", 3),
    "D11": ("{200y}", 4),
    "D12": ("{1U, 2b, 3c}", 3),
    "D13": ("{1U, 2b, 3c}", 3),
    "D14": ("{1U, 2b, 3c}", 3),
    "D15": ("{1U, 2b, 3c}", 3),
    "D16": ("{200y}", 3),
    "D17": ("{1a, 2b, 20j, 3c}", 3),
    "D18": ("{1a, 3c}", 3),
    "D19": ("{1a, 2b, 3c}", 2),
    "D20": ("{1a, 2b, 3c}", 2),
    "D21": ("{200y}", 3),
    "D22": ("{1a, 2b, 20j, 3c}", 3),
    "D23": ("{1a, 3c}", 3),
    "D24": ("{1a, 2b, 3c}", 2),
    "D25": ("{1a, 2b, 3c}", 2),
    "T1": ("{200y}", 4),
    "T2": ("{100x, 20j}", 4),
    "T3": ("{100x}", 3),
    "T4": ("{100x}", 3),
    "T5": ("{200y}", 4),
    "T6": ("{1a, 10i, 2b, 20j, 3c}", 4),
    "T7": ("{1a, 10i, 2b, 3c}", 3),
    "T8": ("{1a, 10i, 2b, 3c}", 3),
    "T9": ("{200y}", 4),
    "T10": ("{1U, 2b, 20j, 3c}", 4),
    "T11": ("{1U, 2b, 3c}", 3),
    "T12": ("{1U, 2b, 3c}", 3),
    "T13": ("{200y}", 3),
    "T14": ("{1a, 2b, 20j, 3c}", 3),
    "T15": ("{1a, 2b, 3c}", 2),
    "T16": ("{1a, 2b, 3c}", 2),
}
# How many files they end with, where they say it.
FILES = {
    **{"D9": 2, "D10": 3, "D17": 2, "D18": 1, "D19": 1, "D20": 1, "D22": 2, "D23": 1, "D24": 1},
    **{"D25": 1, "T8": 3, "T16": 1},
}


def check(spark: SparkSession, tables: Tables, case: Case) -> None:
    result = run_case(spark, tables, case, reader=independent_reader())
    assert result.problems == ()


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.id)
def test_cell(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.variant_cases("S*", "*-apart", but=["S4-meet", "S9-meet"])
@pytest.mark.parametrize("case", DELTA_CELLS, ids=lambda case: case.id)
def test_cell_of_the_delta_document(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"standard-{case.id}")
def test_what_a_standard_table_refuses(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.variant_cases(
    but=["P1", "P2", "P3", "P7", "P11", "D18-no-deletion-vectors", "D23-no-deletion-vectors"]
)
@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.id)
def test_variant(spark: SparkSession, tables: Tables, case: Case) -> None:
    check(spark, tables, case)


@pytest.mark.soak
@pytest.mark.parametrize("sessions", [1, 2], ids=["one-session", "two-sessions"])
@pytest.mark.parametrize("deletion_vectors", ["on", "off"], ids=["vectors", "no-vectors"])
@pytest.mark.parametrize(
    "case",
    [
        *CELLS,
        *variants.PARTITIONS,
        *variants.REVERSED,
        *variants.COMPACTIONS,
        *variants.STATEMENTS,
    ],
    ids=lambda case: case.id,
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
    assert (show(case.rows), len(case.changes)) == WORKED[case.id]
    assert case.files == FILES.get(case.id, case.files)


def test_all_named_variants_run() -> None:
    assert {case.id for case in QUICK} == set(NAMED)


def test_every_cell_is_in_the_matrices() -> None:
    cells = MATRICES["maxcompute_delta"].cells
    assert [cell.id for cell in cells] == [f"D{n}" for n in range(1, 26)]
    assert sum(cell.outcome is Outcome.BOTH for cell in cells) == 12
    cells = MATRICES["maxcompute_transactional"].cells
    assert [cell.id for cell in cells] == [f"T{n}" for n in range(1, 17)]
    for policy, letter, can in (("serializable", "S", 6), ("write_serializable", "W", 4)):
        cells = MATRICES[policy].cells
        assert [cell.id for cell in cells] == [f"{letter}{n}" for n in range(1, 10)]
        assert sum(cell.outcome is Outcome.CAN for cell in cells) == can


@pytest.mark.parametrize("policy", ["serializable", "write_serializable", "row_level"])
def test_a_cell_that_can_conflict_has_a_case_that_does_and_one_that_does_not(policy: str) -> None:
    for cell in MATRICES[policy].cells:
        outcomes = [case.outcome for case in cases_of(policy, cell)]
        can = cell.outcome is Outcome.CAN
        assert outcomes == ([Outcome.FAIL, Outcome.BOTH] if can else [cell.outcome])


def test_the_lab_finds_stock_delta_wrong(spark: SparkSession, tmp_path: Path) -> None:
    run = lab.run(spark, tmp_path, policies=["maxcompute_delta"], cells=["D3", "D7"], rules="stock")
    (found,) = run
    cells = MATRICES["maxcompute_delta"].cells
    marks = {cell.id: found.mark(cell) for cell in cells}
    assert marks["D3"] is report.Mark.OK
    assert marks["D7"] is report.Mark.WRONG
    assert marks["D1"] is report.Mark.NOT_RUN

    text = report.as_text(found)
    assert "D7 fail/both WRONG" in text
    assert "must be fail, is both" in text
    assert json.loads(json.dumps(report.as_json(found)))["wrong"] == 1
    assert '<td class="WRONG"><b>D7</b>' in html.as_html([found], "versions")


@pytest.mark.variant
def test_both_cases_of_a_cell_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    (found,) = lab.run(spark, tmp_path, policies=["row_level"], cells=["R5"])
    assert "R5 can/fail, both ok" in report.as_text(found)
    cell = next(cell for cell in report.as_json(found)["cells"] if cell["id"] == "R5")  # type: ignore[attr-defined]
    shown = [(case["id"], case["seen"], case["error"]) for case in cell["cases"]]
    error = "ConcurrentDeleteReadError"
    assert shown == [("R5-meet", "fail", error), ("R5-apart", "both", None)]
    page = html.as_html([found], "versions")
    assert all(f"<summary>{case}" in page for case, _, _ in shown)
    assert "<th>UPDATE, DELETE, MERGE INTO</th>" in page


@pytest.mark.parametrize("policy", [*lab.DEFAULT_POLICIES])
def test_the_policies_of_the_jar_agree_with_the_documents(spark: SparkSession, policy: str) -> None:
    names = {
        "IO": "OVERWRITE",
        "II": "APPEND",
        "UD": "MUTATE",
        "MIN": "COMPACT_MINOR",
        "MAJ": "COMPACT_MAJOR",
        "SFM": "MERGE_SMALLFILES",
    }
    cells = spark.sql("CALL interlock.policies()").where(f"policy = '{policy}'").collect()
    verdicts = {(cell.earlier, cell.later): cell for cell in cells}
    for cell in MATRICES[policy].cells:
        jars = verdicts[names[cell.earlier.name], names[cell.later.name]]
        assert jars.rule in (f"{jars.earlier} -> {jars.later}", cell.id)
        decides = {Outcome.FAIL: {"FAIL"}, Outcome.CAN: {"BY_FILES", "BY_ROWS"}}
        if cell.outcome is Outcome.BOTH:
            assert jars.verdict != "FAIL", cell.id
        else:
            assert jars.verdict in decides[cell.outcome], cell.id


@pytest.fixture
def command(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """The command line, on the session of this module."""

    @contextmanager
    def session() -> Iterator[tuple[SparkSession, Path]]:
        yield spark, tmp_path

    monkeypatch.setattr("interlock._commands.lab.small_session", session)
    return lambda *arguments: main(arguments)


def test_the_command_succeeds_where_all_is_right(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "lab.html"
    assert command("lab", "--cell", "d2", "d20", "--json", "--html", str(page)) == 0
    (matrix,) = json.loads(capsys.readouterr().out)["matrices"]
    marks = {cell["id"]: cell["mark"] for cell in matrix["cells"]}
    assert (marks["D2"], marks["D20"], marks["D7"]) == ("ok", "ok", "-")
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
