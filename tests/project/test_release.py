"""What keeps a release from being laid out. Needs no Spark."""

from __future__ import annotations

import json
from pathlib import Path

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
