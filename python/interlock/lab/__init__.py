"""The conflict lab: the documents' cells, run live on real Spark and Delta.

The rules are copied from the documents (`documents`). The expected result of two jobs is computed
from them in plain Python (`model`), and compared with the result on a real table of three rows
(`runner`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from interlock.lab.cases import on_stock
from interlock.lab.cells import cases_of
from interlock.lab.documents import MATRICES
from interlock.lab.example import Tables
from interlock.lab.reader import independent_reader
from interlock.lab.report import MatrixReport
from interlock.lab.runner import CaseResult, run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_POLICIES = (
    "maxcompute_delta",
    "maxcompute_transactional",
    "serializable",
    "write_serializable",
    "row_level",
)

__all__ = ["DEFAULT_POLICIES", "MATRICES", "MatrixReport", "run"]


def run(
    spark: SparkSession,
    folder: Path,
    *,
    policies: Collection[str] = DEFAULT_POLICIES,
    cells: Collection[str] = (),
    rules: Literal["policy", "stock"] = "policy",
    deletion_vectors: Literal["on", "off"] = "on",
    on_result: Callable[[CaseResult], object] = lambda result: None,
) -> Iterator[MatrixReport]:
    """Run the cells and report them, matrix by matrix.

    Args:
        spark: a session with Interlock
        folder: where tables are made
        policies: whose matrices to run
        cells: ids of the only cells to run; all if empty
        rules: "stock" gives the tables no policy and compacts with OPTIMIZE, and so shows what
            Delta does by itself
        deletion_vectors: the tables' setting
        on_result: called after each case

    """
    tables = Tables(spark, folder)
    reader = independent_reader()
    for policy in policies:
        matrix = MATRICES[policy]
        report = MatrixReport(matrix, policy if rules == "policy" else "stock Delta")
        for cell in matrix.cells:
            if cells and cell.id not in cells:
                continue
            for case in cases_of(policy, cell):
                wanted = replace(case, deletion_vectors=deletion_vectors)
                if rules == "stock":
                    wanted = on_stock(wanted)
                result = run_case(spark, tables, wanted, reader=reader)
                report.add(cell, result)
                on_result(result)
        yield report
