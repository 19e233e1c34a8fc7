"""An S3 server that looks whether an object is there and makes it later: moto, on 127.0.0.1.

It obeys `If-None-Match` for one request after the other. Of several at once for an object of a
trial, more than one succeeds: the first writes it when a second has looked and found none.
Run as a program, it is the server, at the port that is its argument.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

from tests.kit.ports import HOST, free_port, running
from tests.kit.tree import ROOT

BUCKET = "bucket"
_LONGEST_WAIT_SECONDS = 10


@contextmanager
def start(log: Path) -> Iterator[int]:
    """Start it with an empty bucket, write its output to `log`, yield its port, and end it."""
    port = free_port()
    command = [sys.executable, "-m", "tests.storage.hasty_s3", str(port)]
    with running(command, port, log, cwd=ROOT):
        yield port


def _serve(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import S3Backend, s3_backends
    from werkzeug.serving import run_simple

    _write_when_two_have_looked(S3Backend)
    s3_backends["123456789012"]["aws"].create_bucket(BUCKET, "us-east-1")
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(HOST, port, application, threaded=True)


def _write_when_two_have_looked(backend: Any) -> None:
    put_object = backend.put_object
    lock = Lock()
    looked: defaultdict[str, int] = defaultdict(int)
    two_have: defaultdict[str, Event] = defaultdict(Event)

    def put_later(self: Any, bucket: str, key: str, *args: Any, **named: Any) -> Any:
        if ".race." in key and key.endswith(".json"):
            with lock:
                looked[key] += 1
                event = two_have[key]
                if looked[key] == 2:
                    event.set()
            event.wait(_LONGEST_WAIT_SECONDS)
        return put_object(self, bucket, key, *args, **named)

    backend.put_object = put_later


if __name__ == "__main__":
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    _serve(int(sys.argv[1]))
