"""Histories of blocks by eight clients: four sessions in each of two processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.opened import opened
from integration.stores import FILE_SYSTEM, STORES
from tests.blocks.block_histories import checked
from tests.kit.block_histories.run import in_processes
from tests.kit.driver_process import driver_processes

CLIENTS = 8
HISTORIES = (("bank", "row_level", 1), ("lists", "row_serializable", 2))


@pytest.mark.variant_cases("filesystem-2-bank-*")
@pytest.mark.parametrize(("kind", "policy", "seed"), HISTORIES)
@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        (FILE_SYSTEM.name, 2),
        *(pytest.param(name, 20, marks=pytest.mark.soak) for name in (STORES[0], STORES[-1])),
    ],
)
def test_two_processes(
    name: str, blocks: int, kind: str, policy: str, seed: int, tmp_path: Path
) -> None:
    with (
        opened(name, tmp_path / "database") as (store, _),
        driver_processes(tmp_path, "interlock", "interlock", settings=store.settings) as processes,
    ):
        ends, tables = in_processes(
            processes,
            tmp_path / kind,
            kind,
            policy,
            seed,
            clients=CLIENTS,
            blocks=blocks,
            properties={k: v for k, v in store.properties.items() if k != "interlock.policy"},
        )
        assert len(ends) == CLIENTS * blocks
        checked(kind, policy, seed, ends, tables)
