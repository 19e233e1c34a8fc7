"""A policy of the user's own, its text and its digest, and a stricter one of the same name."""

from __future__ import annotations

import hashlib

KEY = "spark.interlock.policies.ours"
DIGEST = "interlock.policy.digest"
CELLS = {
    ("OVERWRITE", "OVERWRITE"): "REPLACE_LIVE",
    ("APPEND", "OVERWRITE"): "REPLACE_LIVE",
    ("MUTATE", "OVERWRITE"): "REPLACE_LIVE",
    ("COMPACT_MINOR", "OVERWRITE"): "REPLACE_LIVE",
    ("APPEND", "APPEND"): "AS_IS",
    ("MUTATE", "APPEND"): "AS_IS",
    ("APPEND", "COMPACT_MINOR"): "AS_IS",
    ("MUTATE", "COMPACT_MINOR"): "REBASE_COMPACTION",
    ("COMPACT_MINOR", "APPEND"): "AS_IS",
    ("COMPACT_MINOR", "MUTATE"): "REMAP_ROWS",
}
CLASSES = ("OVERWRITE", "APPEND", "MUTATE", "COMPACT_MINOR")


def text(cells: dict[tuple[str, str], str] = CELLS, head: str = "source us") -> str:
    """Write a policy; cells that `cells` leaves out are FAIL."""
    lines = [head, "compaction COMPACT_MINOR", f"| x | {' | '.join(CLASSES)} |"]
    for earlier in CLASSES:
        verdicts = (cells.get((earlier, later), "FAIL") for later in CLASSES)
        lines.append(f"| {earlier} | {' | '.join(verdicts)} |")
    return "\n".join(lines)


def digest(cells: dict[tuple[str, str], str] = CELLS) -> str:
    """Compute the digest without the jar."""
    rules = sorted(f"{e} -> {x}: {cells.get((e, x), 'FAIL')}" for e in CLASSES for x in CLASSES)
    whole = "\n".join(["compaction COMPACT_MINOR", "isolation Serializable", *rules])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


STRICT = {pair: verdict for pair, verdict in CELLS.items() if pair != ("APPEND", "APPEND")}
OURS, OTHERS = {KEY: text()}, {KEY: text(STRICT)}


def under(policy: str) -> str:
    return f"TBLPROPERTIES ('interlock.policy' = '{policy}')"


def put_under(policy: str) -> str:
    return f"ALTER TABLE {{t}} SET {under(policy)}"
