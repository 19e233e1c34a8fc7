"""Each block of docs/recipes.md is run, and in the versions that it names. Needs no Spark."""

from __future__ import annotations

import re

import pytest

from tests.kit.recipes import CONSTRAINTS, PAGE, files

TEXT = PAGE.read_text(encoding="utf-8")
TESTS = "".join(file.read_text(encoding="utf-8") for file in CONSTRAINTS.glob("test_*.py"))


@pytest.mark.parametrize("name", files())
def test_a_file_of_the_page_is_run(name: str) -> None:
    assert f'"{name}"' in TESTS or f"'{name}'" in TESTS


def test_every_block_is_a_file_or_runs_in_a_session() -> None:
    """All but those of Unity Catalog, of which the page says that they are not run."""
    before, _, unity = TEXT.partition("\n## Unity Catalog\n")
    assert unity.count("<!-- not run -->\n```") == len(re.findall(r"^```.+$", unity, re.MULTILINE))
    kinds = re.findall(r"^```(.+)$", before, re.MULTILINE)
    assert [kind for kind in kinds if "title=" not in kind] == [
        *("sql", "python", "text"),
        *("python", "text"),
    ]


@pytest.mark.parametrize("package", ["dbt-core", "dbt-spark", "apache-airflow-core"])
def test_the_page_names_the_version_that_is_installed(package: str) -> None:
    (version,) = re.findall(rf"{package} ([\d.]+[\d])", TEXT.partition("\n## ")[0])
    constraints = [*CONSTRAINTS.glob("*.txt")]
    pins = "".join(file.read_text(encoding="utf-8") for file in constraints)
    assert f"{package}=={version}\n" in pins.replace("_", "-")
