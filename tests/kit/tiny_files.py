"""Tables of very many files, made by links to one: writing them one by one would take too long."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kit.support import Table, commit, commit_file, latest_version, make_table

# The number of links to one file; ext4 permits 65,000.
MOST_LINKS = 50_000


def of_tiny_files(spark: SparkSession, path: Path, names: Iterable[str]) -> Table:
    """Files with the row 0 by these names, one with the row 1 before them and one with 2 behind."""
    table = make_table(
        spark,
        path,
        columns="(id INT) USING delta",
        properties={"delta.enableDeletionVectors": "true"},
        statements=("INSERT INTO {t} VALUES (1)", "INSERT INTO {t} VALUES (0)"),
    )
    _link(table, names)
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    return table


def _link(table: Table, names: Iterable[str]) -> None:
    """Commit, as any writer of Delta might, links to the file of the last version."""
    version = latest_version(table)
    actions = {kind: value for action in commit(table, version) for kind, value in action.items()}
    info, add, domain = (actions[kind] for kind in ("commitInfo", "add", "domainMetadata"))
    first, linked = add["baseRowId"] + 1, table.path / add["path"]
    info["inCommitTimestamp"] += 1
    info.update({"readVersion": version, "txnId": "links", "tags": {}})
    count = 0
    with commit_file(table, version + 1).open("w") as log:
        log.write(json.dumps({"commitInfo": info}) + "\n")
        for count, name in enumerate(names, start=1):
            target = table.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if count % MOST_LINKS:
                os.link(linked, target)
            else:
                linked = Path(shutil.copy(linked, target))
            ids = {"baseRowId": first + count - 1, "defaultRowCommitVersion": version + 1}
            log.write(json.dumps({"add": {**add, **ids, "path": name}}) + "\n")
        mark = json.loads(domain["configuration"]) | {"rowIdHighWaterMark": first + count - 1}
        domain["configuration"] = json.dumps(mark)
        log.write(json.dumps({"domainMetadata": domain}) + "\n")
