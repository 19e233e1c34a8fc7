"""Starts what a store needs: a database, an S3 server, a cluster of HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from integration.stores import FILE_SYSTEM, ON_HDFS, ON_S3, Store
from tests.postgres.database import Database, database
from tests.postgres.postgres import VERSIONS
from tests.storage import hdfs, s3
from tests.storage.remote import Storage


@contextmanager
def opened(name: str, folder: Path) -> Iterator[tuple[Store, Database | None]]:
    """Start what the store of a name in `stores` needs."""
    with ExitStack() as stack:
        local = name.removesuffix(ON_S3).removesuffix(ON_HDFS)
        store, behind = FILE_SYSTEM, None
        if local != FILE_SYSTEM.name:
            version = next(version for version in VERSIONS if local.endswith(str(version)))
            behind = stack.enter_context(database(version, folder))
            store = behind.store(local)
        if name.endswith(ON_S3):
            server = stack.enter_context(s3.start(folder / "s3"))
            store = store.on(server.storage(), server.bucket, ON_S3)
        elif name.endswith(ON_HDFS):
            cluster = stack.enter_context(hdfs.start(folder / "hdfs"))
            store = store.on(Storage(cluster.url, {}), folder / "copies", ON_HDFS)
        yield store, behind
