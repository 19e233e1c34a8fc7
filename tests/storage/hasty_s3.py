"""An S3 server that looks whether an object is there and makes it later: moto, on 127.0.0.1.

It obeys `If-None-Match` for one request after the other. Of several at once, more than one can
succeed. Run as a program, it is the server, at the port that is its argument.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.ports import HOST, free_port, running
from tests.kit.tree import ROOT

BUCKET = "bucket"
_SWITCH_SECONDS = 1e-5


@contextmanager
def start(log: Path) -> Iterator[int]:
    """Start it with an empty bucket, write its output to `log`, yield its port, and end it."""
    port = free_port()
    command = [sys.executable, "-m", "tests.storage.hasty_s3", str(port)]
    with running(command, port, log, cwd=ROOT):
        yield port


def _serve(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import run_simple

    sys.setswitchinterval(_SWITCH_SECONDS)  # so that its threads meet as those of a busy server do
    s3_backends["123456789012"]["aws"].create_bucket(BUCKET, "us-east-1")
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(HOST, port, application, threaded=True)


if __name__ == "__main__":
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    _serve(int(sys.argv[1]))
