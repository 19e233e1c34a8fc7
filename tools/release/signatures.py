"""Checksums and signatures beside the files of a Maven repository."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

ALGORITHMS = ("md5", "sha1", "sha256", "sha512")


def artifacts(repository: Path) -> list[Path]:
    """List the files that have checksums and signatures beside them."""
    beside = {f".{name}" for name in (*ALGORITHMS, "asc")}
    return [p for p in sorted(repository.rglob("*")) if p.is_file() and p.suffix not in beside]


def write_checksums(artifact: Path) -> None:
    """Write the checksums of a file, in the place of those that sbt has written."""
    for algorithm in ALGORITHMS:
        digest = hashlib.new(algorithm, artifact.read_bytes()).hexdigest()
        Path(f"{artifact}.{algorithm}").write_text(digest, encoding="ascii")


@dataclass(frozen=True)
class Key:
    """A key of GnuPG, and its passphrase unless GnuPG's agent has it."""

    name: str
    passphrase: str | None = field(default=None, repr=False)

    def try_out(self) -> None:
        """Sign a scratch file."""
        with TemporaryDirectory() as folder:
            scratch = Path(folder, "scratch")
            scratch.touch()
            self.sign(scratch)

    def sign(self, artifact: Path) -> None:
        """Write a detached signature beside the file, and verify it."""
        command = ["gpg", "--batch", "--yes", "--armor", "--local-user", self.name]
        if self.passphrase is not None:
            command += ["--pinentry-mode", "loopback", "--passphrase-fd", "0"]
        subprocess.run(
            [*command, "--detach-sign", str(artifact)],
            input=self.passphrase or "",
            text=True,
            check=True,
        )
        verify = ["gpg", "--batch", "--quiet", "--verify", f"{artifact}.asc", str(artifact)]
        subprocess.run(verify, check=True, capture_output=True)
