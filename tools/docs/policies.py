"""docs/policies.md."""

from __future__ import annotations

from pathlib import Path

from tools.docs.markdown import page_of, table
from tools.docs.resources import Policy, read_harmless_properties

_STATEMENTS = {
    "OVERWRITE": "INSERT OVERWRITE, TRUNCATE",
    "APPEND": "INSERT INTO",
    "MUTATE": "UPDATE, DELETE, MERGE",
    "COMPACT_MINOR": "COMPACT MINOR",
    "COMPACT_MAJOR": "COMPACT MAJOR",
    "MERGE_SMALLFILES": "MERGE SMALLFILES",
}
_VERDICTS = {
    "FAIL": "The later job fails with a conflict error. It makes no version and leaves no row. "
    "Its files are deleted; files that cannot be deleted are left to VACUUM.",
    "AS_IS": "The later job commits what it has written, at the next version.",
    "REPLACE_LIVE": "The later job commits and removes every file that is in its scope at that "
    "moment, whether or not it has read the file. It does not compute its own result again.",
    "BY_FILES": "The later job fails if the earlier one removed files that the later one has read "
    "or removes, or added rows that the later one's predicates select. With `isolation "
    "WriteSerializable`, rows that the earlier job added without reading the table do not count.",
    "BY_ROWS": "The later job fails if both changed the same row, or if its predicates select a "
    "row that the earlier job added, changed (as it was before or as it is now) or deleted. A "
    "predicate that cannot be evaluated counts as selecting the row. Otherwise the later job "
    "commits, and a file in which both deleted rows gets one deletion vector with the rows of "
    "both.",
    "REMAP_ROWS": "The later job commits. The rows that it changed or deleted are marked as "
    "deleted in the file where the compaction has put them. No data is written, and of the data at "
    "most row ids are read.",
    "REBASE_COMPACTION": "The compaction commits. The rows that the earlier job changed or "
    "deleted are marked as deleted in the compaction's files. No data is written, and of the data "
    "at most row ids are read.",
    "SUPERSEDE": "The later compaction commits. It removes the files that the earlier one made of "
    "its inputs.",
}
_OWN = Path(__file__).with_name("own_policy.md")
_MAP_ROWS = frozenset({"REMAP_ROWS", "REBASE_COMPACTION"})

_INTRODUCTION = """\
A policy is a table. Each row is the class of the job that committed first, each column the class
of the job that committed second, and the cell says what happens to the second one. The order of
the commits counts, not the order in which the jobs started. A cell applies if both jobs work on
one partition, or if the table has no partitions. Jobs in different partitions never conflict, and
a commit that changed no file conflicts with nobody.

[entry-points.md](entry-points.md) says which statement has which class,
[design-your-pipeline.md](design-your-pipeline.md) what follows for jobs."""

_NOT_SAFE = """\
If a rebase (REMAP_ROWS, REBASE_COMPACTION, SUPERSEDE) cannot be proved safe, the later job fails
with a conflict error that says why:
[how-it-works.md](how-it-works.md#rows-that-a-compaction-moved)."""

_ISOLATION = """\
A table can have the property `delta.isolationLevel` as well. Then the stricter of this level and
the policy's level counts: with `'delta.isolationLevel' = 'Serializable'` cells with BY_FILES and
BY_ROWS look at rows of blind INSERTs too, also under `write_serializable` and `row_level`. The
other verdicts depend only on the classes of the two jobs, not on what they have read. So the
property has no effect under the MaxCompute policies, and the driver's log has a warning if a
table has both."""


_METADATA = """\
## Changes of metadata

A job fails if the table's metadata changed while it ran, under the MaxCompute policies by every
change. Policies that have BY_FILES or BY_ROWS cells (`row_level`, `row_serializable`,
`serializable`, `write_serializable`) compare what the two jobs changed:

- Equal changes are one change, whatever they change: the same comment, new column (name, type and
  place), property, constraint or CLUSTER BY, the same RENAME or DROP COLUMN. Each statement makes
  its version, and the later one changes nothing. ALTER TABLE ... CLUSTER BY with the columns that
  the table has already makes no version, under any policy.
- Different harmless changes both stand. So dbt models that run in parallel on one table, with
  comments, CLUSTER BY and table properties of their own, all commit, and so do loaders that each
  add columns. A new column keeps its place: at the end, at the front, or behind the column that it
  was to follow.
- Jobs that write data pass harmless changes: rows that they write have NULL in a new column. They
  may add columns themselves, by `mergeSchema` or MERGE WITH SCHEMA EVOLUTION.
- Other changes, such as `delta.appendOnly`, a CHECK constraint or another type, pass comments on
  the table and harmless properties. Everything else fails after them, and they fail after new
  columns and comments on columns.
- Two changes of one thing to different values contradict each other: the later one fails, and the
  error (INTERLOCK_METADATA_CHANGED) says what both have changed: *version 3 (ADD COLUMNS by ann)
  changed the column w to INT AFTER v, and this job to STRING AFTER v*.

With column mapping, ids are those of the first job, and the later one's new columns get higher
ones. Only files that have been written cannot be given other ids: where readers go by ids (the mode
`id`, and the `icebergCompat` properties), an append or MERGE that adds columns fails if an earlier
job added other columns, and commits if it added the same ones. Without column mapping it fails if
the earlier job spelled the column otherwise (`W` for `w`).

CREATE TABLE IF NOT EXISTS does nothing if another job creates the table at the same time with a
policy; without IF NOT EXISTS, or with AS SELECT, it fails as if the table had been there before.
With AS SELECT it does nothing either if the session says that it
[runs again](design-your-pipeline.md#when-a-job-loses).

Harmless are

- comments on the table and on columns,
- new columns, nullable and without a default,
- SET and UNSET TBLPROPERTIES of properties of your own, whose names do not begin with `delta.`,
  `interlock.`, `option.` or `spark.`, and of these:"""


def page(policies: list[Policy]) -> str:
    """Return docs/policies.md.

    Raises:
        ValueError: a policy uses a verdict that nothing here explains

    """
    used = {cell.verdict for policy in policies for cell in policy.cells}
    if missing := used - _VERDICTS.keys():
        raise ValueError(f"{__name__} explains no {', '.join(sorted(missing))}.")
    verdicts = [[name, meaning] for name, meaning in _VERDICTS.items()]
    return page_of(
        "# Policies",
        "<!-- Written by `make docs` from the policies' resources: edit those. -->",
        _INTRODUCTION,
        "## Verdicts",
        table(["verdict", "meaning"], verdicts),
        _NOT_SAFE,
        _ISOLATION,
        *map(_section, policies),
        _metadata(),
        _OWN.read_text(encoding="utf-8").rstrip(),
    )


def _metadata() -> str:
    return f"{_METADATA}\n  {', '.join(f'`{name}`' for name in read_harmless_properties())}."


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
