"""A storage account of Azure on 127.0.0.1 for tests: Azurite, and Hadoop's ABFS for Spark.

    with start(folder) as storage:
        spark = ... .config(map=storage.settings) ...
        spark.sql(f"CREATE TABLE delta.`{storage.url}/t` ...")

Azurite has the Blob endpoint only, of accounts without a hierarchical namespace. There ABFS renames
a file by a copy on the condition that its target is not there.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.java import fetched, hadoop_version
from tests.kit.ports import HOST, free_port, running
from tests.storage.programs import from_npm, node
from tests.storage.remote import Storage

_ACCOUNT, _KEY = "tests", base64.b64encode(b"secret-of-tests").decode()
# The name by which ABFS recognises an account; its requests go to `fs.azure.abfs.endpoint`.
_HOST = f"{_ACCOUNT}.dfs.core.windows.net"
_ABFS = [
    f"org.apache.hadoop:hadoop-azure:{hadoop_version()}",
    "org.apache.hadoop.thirdparty:hadoop-shaded-guava:1.5.0",
    "org.hdrhistogram:HdrHistogram:2.1.12",
    "org.wildfly.openssl:wildfly-openssl:2.2.5.Final",
]
# Newer ones bring 50 to 200 MB of libraries with which they report their use.
_SERVER = "azurite@3.33.0"


@contextmanager
def start(folder: Path) -> Iterator[Storage]:
    """Start a server that keeps its data in `folder`, and end it."""
    port = free_port()
    main = from_npm(_SERVER) / "dist/src/blob/main.js"
    options = ["--blobHost", HOST, "--blobPort", str(port), "--location", str(folder / "data")]
    # ABFS names a version of the interface that this Azurite does not know.
    loosely = ["--silent", "--loose", "--skipApiVersionCheck"]
    command = [str(node()), str(main), *options, *loosely]
    env = {**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"}
    with running(command, port, folder / "server.log", env=env):
        yield Storage(f"abfs://container@{_HOST}", _settings(port))


def _settings(port: int) -> dict[str, str]:
    azure = {
        "abfs.endpoint": f"{HOST}:{port}",
        "account.auth.type": "SharedKey",
        f"account.key.{_HOST}": _KEY,
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
        "createRemoteFileSystemDuringInitialization": "true",
        # Without TLS, which ABFS's other library insists on.
        "always.use.https": "false",
        "networking.library": "JDK_HTTP_URL_CONNECTION",
    }
    return {
        "spark.jars": ",".join(str(jar) for jar in fetched(_ABFS)),
        **{f"spark.hadoop.fs.azure.{key}": value for key, value in azure.items()},
    }
