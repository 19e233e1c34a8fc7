"""What keeps a release from being laid out. Needs no Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.release import __main__ as release
from tools.release.builds import differences, sort_components


def test_the_order_of_components_is_no_difference(tmp_path: Path) -> None:
    components = [{"bom-ref": name} for name in ("b", "a", "c")]
    for name, order in (("one", 1), ("other", -1)):
        (tmp_path / name).mkdir()
        sbom = tmp_path / name / "sbom.json"
        sbom.write_text(json.dumps({"components": components[::order]}), encoding="utf-8")
        sort_components(sbom)
    assert differences(tmp_path / "one", tmp_path / "other") == []


def test_files_that_two_builds_do_not_share_are_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for build in (one, other):
        (build / "maven").mkdir(parents=True)
        (build / "maven" / "same.jar").write_bytes(b"same")
    assert differences(one, other) == []
    (one / "maven" / "changed.jar").write_bytes(b"1")
    (other / "maven" / "changed.jar").write_bytes(b"2")
    (one / "first.whl").touch()
    (other / "second.whl").touch()
    assert differences(one, other) == ["first.whl", "maven/changed.jar", "second.whl"]


@pytest.mark.parametrize("gpg", ["", "exit 2"], ids=["no GnuPG", "no such key"])
def test_a_key_that_does_not_sign_is_told_before_the_builds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpg: str
) -> None:
    if gpg:
        (tmp_path / "gpg").write_text(f"#!/bin/sh\n{gpg}\n", encoding="ascii")
        (tmp_path / "gpg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INTERLOCK_SIGNING_KEY", "0xFEED")
    monkeypatch.setattr(sys, "argv", ["release", "--sbt", "sbt", "4.2"])
    monkeypatch.setattr(release, "changes", lambda root: "")
    monkeypatch.setattr(release, "Build", lambda root, folder: pytest.fail("built"))
    with pytest.raises(SystemExit, match="does not sign with the key 0xFEED"):
        release.main()
