"""Build a release twice, compare the two, and lay the first out in `release`.

`release/maven` is a Maven repository: for each version of Spark the jar, its sources, its
documentation, its POM and its SBOM in CycloneDX's format. `release/python` has the wheel with all
jars, and the source distribution.

With INTERLOCK_SIGNING_KEY, a key that GnuPG knows, each file of the repository is signed. Its
passphrase is INTERLOCK_SIGNING_PASSPHRASE, if the agent does not have it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release.builds import Build, changes, differences
from tools.release.signatures import Key, artifacts

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Build, compare, lay out, sign."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--sbt", required=True, help="the command that starts sbt")
    parser.add_argument("sparks", nargs="+", help="the minor versions of Spark")
    options = parser.parse_args()
    if changed := changes(ROOT):
        sys.exit(f"A release is built from a commit, and these files differ from it:\n{changed}")
    key = _key()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Build(ROOT, Path(folder, name)) for name in ("first", "second"))
        for build in (first, second):
            print(f"The {build.folder.name} of two builds of {build.commit}", flush=True)
            build.run(options.sbt, options.sparks)
        if different := differences(first.release, second.release):
            sys.exit("The two builds differ in:\n" + "\n".join(different))
        print("The two builds have the same bytes.")
        shutil.rmtree(ROOT / "release", ignore_errors=True)
        shutil.copytree(first.release, ROOT / "release")
    if key is not None:
        signed = artifacts(ROOT / "release" / "maven")
        for artifact in signed:
            key.sign(artifact)
        print(f"{len(signed)} files are signed with {key.name}.")
    else:
        print("Nothing is signed: INTERLOCK_SIGNING_KEY is not set.")


def _key() -> Key | None:
    """Return the key that signs, once it has signed a scratch file: before the builds."""
    name = os.environ.get("INTERLOCK_SIGNING_KEY")
    if not name:
        return None
    key = Key(name, os.environ.get("INTERLOCK_SIGNING_PASSPHRASE"))
    try:
        key.try_out()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"INTERLOCK_SIGNING_KEY: GnuPG does not sign with the key {name}: {error}")
    return key


if __name__ == "__main__":
    main()
