"""docs/policies.md, and the matrices in README.md."""

from __future__ import annotations

from tools.docs.markdown import page_of, table
from tools.docs.resources import Cell, Policy

_STATEMENTS = {
    "OVERWRITE": "INSERT OVERWRITE, TRUNCATE",
    "APPEND": "INSERT INTO",
    "MUTATE": "UPDATE, DELETE, MERGE",
    "COMPACT_MINOR": "OPTIMIZE",
    "COMPACT_MAJOR": "major compaction",
    "MERGE_SMALLFILES": "OPTIMIZE",
}
_VERDICTS = {
    "FAIL": "The later job raises a conflict error. It makes no version and leaves no row; the "
    "files it has written are deleted, those that cannot be are left to VACUUM.",
    "AS_IS": "The later job commits what it has written, at the next version.",
    "REPLACE_LIVE": "The later job commits and removes every file that is live in its scope at "
    "that moment, whether or not it ever read it. What it wrote is not computed again.",
    "BY_FILES": "Delta's own check decides: the later job fails if the two met in the same files.",
    "REMAP_ROWS": "Open. The later job commits; the rows that it changed are changed where the "
    "compaction has put them.",
    "REBASE_COMPACTION": "Open. The compaction commits; what the earlier job did to its inputs is "
    "done to its outputs.",
    "SUPERSEDE": "Open. The later compaction commits and removes what the earlier one made.",
}
_MAP_ROWS = frozenset({"REMAP_ROWS", "REBASE_COMPACTION"})

_INTRODUCTION = """\
A policy is a table: what becomes of the later job, for each class of job that committed before it.
Rows are the earlier job, columns the later one, in the order of their commits, never of their
starts. A cell applies where the two meet: in a partition, or in a table without partitions. Jobs in
different partitions never conflict, and an earlier job that changed no file disturbs nobody.

[entry-points.md](entry-points.md) says which statement has which class,
[design-your-pipeline.md](design-your-pipeline.md) what follows for jobs."""

_OPEN = """\
**Open** cells wait for the compaction statements. Until then Delta's own checks judge them: the
later job fails if the two met in the same files, and nothing is lost. No statement has the class
COMPACT_MAJOR yet, so its rows and columns are open too."""


def page(policies: list[Policy]) -> str:
    """Return docs/policies.md.

    Raises:
        ValueError: a policy uses a verdict that nothing here explains

    """
    used = {cell.verdict for policy in policies for cell in policy.cells}
    if missing := used - _VERDICTS.keys():
        raise ValueError(f"{__name__} explains no {', '.join(sorted(missing))}.")
    verdicts = [[name, meaning] for name, meaning in _VERDICTS.items() if name in used]
    return page_of(
        "# Policies",
        "<!-- Written by `make docs` from the policies' resources: edit those. -->",
        _INTRODUCTION,
        "## Verdicts",
        table(["verdict", "meaning"], verdicts),
        _OPEN,
        *map(_section, policies),
    )


def with_matrices(readme: str, policies: list[Policy]) -> str:
    """Return README.md with its matrices written anew, each between its markers."""
    for policy in policies:
        before, opening, rest = readme.partition(f"<!-- {policy.name} -->\n")
        if opening:
            _, closing, after = rest.partition("<!-- end -->")
            readme = f"{before}{opening}{_short_matrix(policy)}\n{closing}{after}"
    return readme


def _section(policy: Policy) -> str:
    matrix = [
        [f"**{earlier}**", *(f"{cell.id} {cell.verdict}".strip() for cell in policy.row(earlier))]
        for earlier in policy.classes
    ]
    return "\n\n".join(
        [
            f"## {policy.name}",
            "\n".join(policy.comments),
            table(["earlier \\ later", *policy.classes], matrix),
            "\n".join(f"- {fact}" for fact in _facts(policy)),
        ]
    )


def _facts(policy: Policy) -> list[str]:
    sets = ["row tracking", "in-commit timestamps"]
    if not _MAP_ROWS.isdisjoint(cell.verdict for cell in policy.cells):
        sets.append("the table feature `deletionVectors`")
    facts = [
        f"Source: {policy.head['source']}.",
        f"OPTIMIZE in all its forms and auto compaction are {policy.head['compaction']}.",
        f"The policy gives its tables {', '.join(sets)}.",
    ]
    if open_cells := [cell.id for cell in policy.cells if cell.id and cell.is_open]:
        facts.append(f"Open: {', '.join(open_cells)}.")
    if "MUTATE" not in policy.classes:
        facts.append(f"{_STATEMENTS['MUTATE']} are refused: INTERLOCK_OPERATION_NOT_SUPPORTED.")
    return facts


def _short_matrix(policy: Policy) -> str:
    """Draw a matrix in words."""
    names = [_STATEMENTS[name] for name in policy.classes]
    rows = [
        [f"**{name}**", *map(_outcome, policy.row(earlier))]
        for name, earlier in zip(names, policy.classes, strict=True)
    ]
    return table(["earlier \\ later", *names], rows)


def _outcome(cell: Cell) -> str:
    outcome = "later fails" if cell.verdict == "FAIL" else "both"
    return f"{cell.id} {outcome}" + (" (open)" if cell.is_open else "")
