"""docs/policies.md, and the matrices in README.md."""

from __future__ import annotations

from pathlib import Path

from tools.docs.markdown import page_of, table
from tools.docs.resources import Cell, Policy

_STATEMENTS = {
    "OVERWRITE": "INSERT OVERWRITE, TRUNCATE",
    "APPEND": "INSERT INTO",
    "MUTATE": "UPDATE, DELETE, MERGE",
    "COMPACT_MINOR": "COMPACT MINOR",
    "COMPACT_MAJOR": "COMPACT MAJOR",
    "MERGE_SMALLFILES": "MERGE SMALLFILES",
}
_VERDICTS = {
    "FAIL": "The later job raises a conflict error. It makes no version and leaves no row; the "
    "files it has written are deleted, those that cannot be are left to VACUUM.",
    "AS_IS": "The later job commits what it has written, at the next version.",
    "REPLACE_LIVE": "The later job commits and removes every file that is live in its scope at "
    "that moment, whether or not it ever read it. What it wrote is not computed again.",
    "BY_FILES": "The later job fails if the two met in files: the earlier one removed files that "
    "it has read or removes, or added rows that its predicates select. Under `isolation "
    "WriteSerializable` rows do not count that the earlier job added without reading the table.",
    "BY_ROWS": "The later job fails if the two met in rows: its predicates select rows that the "
    "earlier one added, changed or deleted, before or after, or cannot be decided for them. Else "
    "it commits; rows of one file that both marked dead are united.",
    "REMAP_ROWS": "The later job commits. The rows that it changed or deleted are marked dead "
    "where the compaction has put them; no data is read or written.",
    "REBASE_COMPACTION": "The compaction commits. The rows that the earlier job changed or "
    "deleted are marked dead in its files; no data is read or written.",
    "SUPERSEDE": "The later compaction commits and removes what the earlier one made of its "
    "inputs.",
}
_OWN = Path(__file__).with_name("own_policy.md")
_MAP_ROWS = frozenset({"REMAP_ROWS", "REBASE_COMPACTION"})

_INTRODUCTION = """\
A policy is a table: what becomes of the later job, for each class of job that committed before it.
Rows are the earlier job, columns the later one, in the order of their commits, never of their
starts. A cell applies where the two meet: in a partition, or in a table without partitions. Jobs in
different partitions never conflict, and an earlier job that changed no file disturbs nobody.

[entry-points.md](entry-points.md) says which statement has which class,
[design-your-pipeline.md](design-your-pipeline.md) what follows for jobs."""

_NOT_SAFE = """\
Where a rebase (REMAP_ROWS, REBASE_COMPACTION, SUPERSEDE) cannot be proved safe, the later job fails
with a conflict error that says why: [how-it-works.md](how-it-works.md)."""

_ISOLATION = """\
A table's own `delta.isolationLevel` counts beside the policy's level, and the stricter of the two
holds: with `'delta.isolationLevel' = 'Serializable'` cells with BY_FILES and BY_ROWS look at blind
appends as well, under `write_serializable` and `row_level` too. The other verdicts look at the
classes of the two jobs, never at what they have read. So the property has no effect under the
MaxCompute policies, and the driver's log warns of it when the two come together."""


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
        _NOT_SAFE,
        _ISOLATION,
        *map(_section, policies),
        _OWN.read_text(encoding="utf-8").rstrip(),
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
    if any(cell.verdict == "BY_ROWS" for cell in policy.cells):
        sets.append("`delta.enableDeletionVectors` where it is not set")
    facts = [
        f"Source: {policy.head['source']}.",
        _compactions(policy),
        f"The policy gives its tables {', '.join(sets)}.",
    ]
    if "MUTATE" not in policy.classes:
        facts.append(f"{_STATEMENTS['MUTATE']} are refused: INTERLOCK_OPERATION_NOT_SUPPORTED.")
    return facts


def _compactions(policy: Policy) -> str:
    kind = policy.head["compaction"]
    other = "" if "COMPACT_MAJOR" in policy.classes else "COMPACT MAJOR, "
    return (
        f"COMPACT MINOR, {other}MERGE SMALLFILES, OPTIMIZE in all its forms and auto compaction "
        f"are {kind}."
    )


def _short_matrix(policy: Policy) -> str:
    """Draw a matrix in words."""
    names = [_STATEMENTS[name] for name in policy.classes]
    rows = [
        [f"**{name}**", *map(_outcome, policy.row(earlier))]
        for name, earlier in zip(names, policy.classes, strict=True)
    ]
    return table(["earlier \\ later", *names], rows)


def _outcome(cell: Cell) -> str:
    return f"{cell.id} {'later fails' if cell.verdict == 'FAIL' else 'both'}"
