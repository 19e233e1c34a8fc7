"""The demo with its tables on S3Proxy, an S3 server on 127.0.0.1: `make demo STORE=s3`.

    python -m tools.demo_on_s3 [OPTIONS OF THE DEMO]

The server keeps its objects in a temporary folder. It and S3A are those of the tests. Unless
`--runs` says otherwise, there are two tables: on S3 each takes as long as four on a disk.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from interlock.demo.__main__ import main as demo

from tests.storage import s3


def main() -> int:
    """Start the server, run the demo on it, and return the demo's exit status."""
    with TemporaryDirectory(prefix="interlock-s3-") as folder, s3.start(Path(folder)) as server:
        settings = [f"--conf={key}={value}" for key, value in server.settings().items()]
        tables = ["--runs", "stock", "row_level", f"--tables={server.url}"]
        return demo([*tables, *settings, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
