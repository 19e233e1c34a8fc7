"""A table's properties, version by version, from its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kit.support import Table, commit, commit_info, versions

POLICIES = (
    "maxcompute_delta",
    "maxcompute_transactional",
    "maxcompute_standard",
    "serializable",
    "write_serializable",
)
REQUIRED = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}


@dataclass(frozen=True)
class Definition:
    """The properties and table features that a table has at one version."""

    version: int
    properties: dict[str, str]
    features: frozenset[str]

    @property
    def policy(self) -> str | None:
        return self.properties.get("interlock.policy")

    @property
    def is_complete(self) -> bool:
        """Tell whether it has all that its policy requires."""
        features = {"rowTracking", "inCommitTimestamp"}
        if self.policy == "maxcompute_delta":
            features.add("deletionVectors")
        return REQUIRED.items() <= self.properties.items() and features <= self.features


def definitions(table: Table) -> list[Definition]:
    """Replay the log: return the table's definition at every version."""
    return list(_replayed(table))


def _replayed(table: Table) -> Iterator[Definition]:
    properties: dict[str, str] = {}
    features: frozenset[str] = frozenset()
    for version in versions(table):
        for action in commit(table, version):
            if "metaData" in action:
                properties = action["metaData"]["configuration"]
            if "protocol" in action:
                features = _features(action["protocol"])
        yield Definition(version, properties, features)


def _features(protocol: dict[str, Any]) -> frozenset[str]:
    return frozenset(protocol.get("readerFeatures", []) + protocol.get("writerFeatures", []))


def latest(table: Table) -> Definition:
    return definitions(table)[-1]


def check_policy(table: Table, policy: str | None) -> None:
    """Check the policy at the last version, and that no version lacks what its policy requires.

    In-commit timestamps grow from version to version as long as they are enabled.
    """
    found = definitions(table)
    assert found[-1].policy == policy
    assert [d.version for d in found if d.policy is not None and not d.is_complete] == []
    enabled = [d for d in found if d.properties.get("delta.enableInCommitTimestamps") == "true"]
    stamps = [commit_info(table, d.version)["inCommitTimestamp"] for d in enabled]
    assert stamps == sorted(set(stamps))


def operations(table: Table, since: int = 0) -> list[str]:
    """List the operations in the history, from version `since` on."""
    return [commit_info(table, v)["operation"] for v in versions(table) if v >= since]
