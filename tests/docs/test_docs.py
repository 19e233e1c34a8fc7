"""The documentation: generated pages are up to date, and what pages name exists. Needs no Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.docs import pages, policies
from tools.docs.resources import ROOT, read_policy

GENERATED = pages()
WRITTEN = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def page_name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", GENERATED, ids=page_name)
def test_a_generated_page_is_what_the_resources_give(page: Path) -> None:
    found = (ROOT / page).read_text(encoding="utf-8")
    assert found == GENERATED[page], f"{page} is out of date: run `make docs`"


def test_another_verdict_gives_another_page() -> None:
    text = "policy p\nsource s\ncompaction c\n| x | APPEND |\n| APPEND | {} |\n"
    fails, passes = (read_policy(text.format(verdict)) for verdict in ("FAIL", "AS_IS"))
    assert policies.page([fails]) != policies.page([passes])


def test_a_verdict_without_explanation_is_refused() -> None:
    text = "policy p\nsource s\ncompaction c\n| x | APPEND |\n| APPEND | MAYBE |\n"
    with pytest.raises(ValueError, match="MAYBE"):
        policies.page([read_policy(text)])


@pytest.mark.parametrize("page", WRITTEN, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert ":" in target or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", WRITTEN, ids=page_name)
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= targets


@pytest.mark.parametrize("page", WRITTEN, ids=page_name)
def test_python_examples_compile(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(example, page.name, "exec")
