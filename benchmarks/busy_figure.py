"""Draws what `benchmarks.busy_table` measured, for a light and for a dark page.

    pip install 'spark-interlock[figures]'
    python -m benchmarks.busy_table --hours 24 --results results.json
    python -m benchmarks.busy_figure results.json docs

Writes `busy-table-light.svg` and `busy-table-dark.svg` into the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

PANELS = {
    "aborted attempts": ("aborted attempts", "attempts"),
    "of UPDATE and DELETE": ("of these: UPDATE, DELETE", "attempts"),
    "of MERGE": ("of these: MERGE", "attempts"),
    "wall time, s": ("wall time", "seconds"),
}
SIDES = {"stock": "stock Delta, with a retry loop", "row_level": "Interlock, row_level"}
COLOURS = {"light": ("#8a9099", "#1a6fdb", "#1f2328"), "dark": ("#8a9099", "#5aa2ff", "#e6edf3")}


def draw(results: dict[str, Any], theme: str) -> Any:
    """Draw a panel for each measure, with a bar for each side."""
    *bars, ink = COLOURS[theme]
    sides = results["sides"]
    settings = {"text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}
    with plt.rc_context({**settings, "axes.edgecolor": ink, "font.size": 9}):
        drawn, panels = plt.subplots(1, len(PANELS), figsize=(9, 3.1), layout="constrained")
        for panel, (measure, (title, unit)) in zip(panels, PANELS.items(), strict=True):
            values = [sides[side][measure] for side in SIDES]
            found = panel.bar([0, 1], values, color=bars, width=0.7, label=list(SIDES.values()))
            panel.bar_label(found, fmt="{:,.0f}", padding=2, color=ink)
            panel.set_title(title, fontsize=9)
            panel.set_ylabel(unit)
            panel.set_ylim(0, max(values) * 1.15 or 1)
            panel.set_xticks([])
            panel.spines[["top", "right"]].set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
        drawn.supxlabel(_footnote(results), fontsize=7)
        return drawn


def _footnote(results: dict[str, Any]) -> str:
    stock, ours = (results["sides"][side]["MB written"] for side in SIDES)
    return (
        f"{results['hours']} hours of five writers, no two of which touch the same row; "
        f"each side once, on {results['machine']}.\n"
        f"Written: {stock:.0f} MB and {ours:.0f} MB, since rewritten rows keep their row ids."
    )


def main() -> None:
    """Draw both images."""
    parser = argparse.ArgumentParser(description="The figure of a busy table.")
    parser.add_argument("results", type=Path, help="what benchmarks.busy_table has written")
    parser.add_argument("folder", type=Path, help="where the images go")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text(encoding="utf-8"))
    plt.rcParams["svg.hashsalt"] = "busy-table"  # the same image for the same results
    for theme in COLOURS:
        file = arguments.folder / f"busy-table-{theme}.svg"
        draw(results, theme).savefig(file, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
