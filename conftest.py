"""Marks the variants among the tests, before pytest takes those that are asked for."""

from __future__ import annotations

import pytest

from tests.kit import variants


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    variants.mark(config, items)
