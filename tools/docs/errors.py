"""docs/errors.md."""

from __future__ import annotations

from tools.docs.markdown import page_of, table
from tools.docs.resources import Condition

_CONFLICT = "2D521"

_CONFLICTS = """\
A job lost against one that committed before it. Nothing of it is visible: run it again. Each
conflict is one of Delta's public exceptions (`io.delta.exceptions`), so code that retries on
Delta's classes keeps working. In Python it is an `interlock.ConflictError` as well."""

_ATTRIBUTES = """\
The Python errors have the attributes `condition`, `sqlstate`, `policy`, `rule`, `winner_class`,
`operation_class`, `winner_operation`, `operation`, `read_version`, `winner_version`, `scope`,
`table`, `why`, `txn_id`, `files`, `rows`, `source_rows`, `predicate` and `phase`. On the JVM,
`conflictJson()` of `io.interlock.spark.errors.InterlockConflict` has the same.
`Table.explain(error)` tells all that is known: [conflicts.md](conflicts.md).

Checks of Delta's reject a job under every policy in these cases. The condition is Delta's
(`DELTA_PROTOCOL_CHANGED` and others; `DELTA_METADATA_CHANGED` under the MaxCompute policies). The
errors are `interlock.ConflictError` too, with `None` for what Delta does not tell:"""

_DELTA = (
    (
        "MetadataChanged",
        "the earlier job changed the schema, a property or the policy, under a MaxCompute policy",
    ),
    ("ProtocolChanged", "the earlier job upgraded the table, or created it at the same place"),
    ("ConcurrentTransaction", "two streaming queries write with one checkpoint"),
)

_REFUSALS = """\
These have nothing to do with a policy's cells. In Python they are `interlock.UsageError`, except:

- INTERLOCK_VERSION_MISMATCH: `interlock.VersionMismatchError`, a subclass of it
- INTERLOCK_COMMIT_STATE_UNKNOWN: `interlock.CommitStateUnknown`; the commit may be in the log
- INTERLOCK_FAILED_AFTER_COMMIT: `interlock.CommittedError`; the commit is in the log
- INTERLOCK_STORAGE_FAILED and INTERLOCK_BINDING_INCOMPLETE: `interlock.StorageError`"""


def page(catalogue: dict[str, Condition]) -> str:
    """Return docs/errors.md."""
    conflicts = {name: it for name, it in catalogue.items() if it["sqlState"] == _CONFLICT}
    refusals = {name: it for name, it in catalogue.items() if name not in conflicts}
    kinds = [(name, _camel(name.removeprefix("INTERLOCK_"))) for name in conflicts]
    return page_of(
        "# Errors",
        "<!-- Written by `make docs` from error-conditions.json: edit that. -->",
        "A message says what happened, why, and what to do; that of a conflict ends with details. "
        "`<name>` stands for a parameter.",
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
