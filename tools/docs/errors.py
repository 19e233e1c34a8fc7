"""docs/errors.md."""

from __future__ import annotations

from tools.docs.markdown import page_of, table
from tools.docs.resources import Condition

_CONFLICT = "2D521"

_CONFLICTS = """\
A job lost against one that committed before it. Nothing of it is visible: run it again. Each
conflict is one of Delta's public exceptions (`io.delta.exceptions`), and in Python also an
`interlock.ConflictError`, so code that retries on Delta's classes goes on working."""

_ATTRIBUTES = """\
The Python errors have the attributes `condition`, `sqlstate`, `policy`, `rule`, `winner_class`,
`operation_class`, `winner_operation`, `operation`, `read_version`, `winner_version`, `scope`,
`table`, `why`, `txn_id`, `files`, `rows`, `predicate` and `phase`; on the JVM `conflictJson()` of
`io.interlock.spark.errors.InterlockConflict` has the same. `Table.explain(error)` tells all that is
known: [conflicts.md](conflicts.md).

Where Delta's own checks decide, the condition is Delta's (`DELTA_METADATA_CHANGED` and others); the
errors are `interlock.ConflictError` too, with `None` for what Delta does not tell. So it is under
every policy here:"""

_DELTA = (
    ("MetadataChanged", "the earlier job changed the schema, a property or the policy"),
    ("ProtocolChanged", "the earlier job upgraded the table, or created it at the same place"),
    ("ConcurrentTransaction", "two streaming queries write with one checkpoint"),
)

_REFUSALS = """\
No cell of a policy decides these. In Python they are `interlock.UsageError`, and
INTERLOCK_VERSION_MISMATCH is its subclass `interlock.VersionMismatchError`. Four are others:
INTERLOCK_COMMIT_STATE_UNKNOWN, after which the commit may be there, is
`interlock.CommitStateUnknown`; INTERLOCK_FAILED_AFTER_COMMIT, after which it is there,
`interlock.CommittedError`; INTERLOCK_STORAGE_FAILED and INTERLOCK_BINDING_INCOMPLETE
`interlock.StorageError`."""


def page(catalogue: dict[str, Condition]) -> str:
    """Return docs/errors.md."""
    conflicts = {name: it for name, it in catalogue.items() if it["sqlState"] == _CONFLICT}
    refusals = {name: it for name, it in catalogue.items() if name not in conflicts}
    kinds = [(name, _camel(name.removeprefix("INTERLOCK_"))) for name in conflicts]
    return page_of(
        "# Errors",
        "<!-- Written by `make docs` from error-conditions.json: edit that. -->",
        "A message says what happened, why, and what to do. `<name>` stands for a parameter.",
        "## Conflicts",
        _CONFLICTS,
        table(
            ["condition", "JVM", "Python"],
            [[f"`{name}`", f"`{_jvm(kind)}`", f"`{_python(kind)}`"] for name, kind in kinds],
        ),
        _ATTRIBUTES,
        table(
            ["JVM", "Python", "when"],
            [[f"`{_jvm(kind)}`", f"`{_python(kind)}`", when] for kind, when in _DELTA],
        ),
        *(_section(name, it) for name, it in conflicts.items()),
        "## Refusals",
        _REFUSALS,
        *(_section(name, it) for name, it in refusals.items()),
    )


def _section(name: str, condition: Condition) -> str:
    text = "\n".join(condition["message"])
    return f"### {name}\n\nSQLSTATE {condition['sqlState']}\n\n```text\n{text}\n```"


def _jvm(kind: str) -> str:
    return f"{kind}Exception"


def _python(kind: str) -> str:
    return f"interlock.{kind}Error"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
