"""Every way to write to a table, and the class that Interlock gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.lab.example import PARTITIONED, Example
from interlock.lab.model import Row
from pyspark.sql import SparkSession

from tests.kit.entry_points import (
    APPEND,
    COMPACTION,
    MAJOR_COMPACTION,
    METADATA,
    MUTATE,
    OVERWRITE,
    UNTAGGED,
    Entry,
    Place,
)

A, B, C, Z = (1, "a", 1), (2, "b", 1), (3, "c", 2), (9, "z", 1)
"""The rows of the example table, and the one of the source."""
ALL = (A, B, C)

CLUSTERED = Example(
    "tc",
    "(id INT, v STRING, p INT) USING delta CLUSTER BY (id)",
    PARTITIONED.setup,
    PARTITIONED.history,
)
SCATTERED = Example(
    "ts",
    "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
    ("INSERT INTO {t} VALUES (1, 'a', 1), (3, 'c', 2)", "INSERT INTO {t} VALUES (2, 'b', 1)"),
    (((1, "a", 1), (3, "c", 2)), ALL),
)
"""With two files in one partition, so that there is something to compact."""

DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
AUTO_COMPACT = {
    "spark.databricks.delta.autoCompact.enabled": "true",
    "spark.databricks.delta.autoCompact.minNumFiles": "2",
}
DEAD_ROWS = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 'd', 1), (5, 'e', 1)",
    "DELETE FROM {t} WHERE id = 4",
)


def _line(way: str) -> Callable[..., Entry]:
    """Make entries of one commit: code, operation, class, rows afterwards."""

    def entry(code: str, operation: str, becomes: str, *after: Row, **more: Any) -> Entry:
        return Entry(way, code, ((operation, becomes),), after, **more)

    return entry


sql = _line("SQL")
new_sql = _line("SQL, new tables")
new = _line("DataFrames, new tables")
v1 = _line("DataFrameWriter")
v2 = _line("DataFrameWriterV2")
api = _line("DeltaTable")
stream = _line("Structured Streaming")


def _complete(spark: SparkSession, place: Place) -> None:
    rows = spark.readStream.format("delta").load(str(place.source))
    counted = rows.groupBy("id", "v", "p").count().drop("count")
    query = (
        counted.writeStream.format("delta")
        .outputMode("complete")
        .option("checkpointLocation", str(place.checkpoint))
        .trigger(availableNow=True)
        .toTable(place.name)
    )
    query.awaitTermination()


def _append(spark: SparkSession, place: Place) -> None:
    rows = spark.readStream.format("delta").load(str(place.source))
    query = (
        rows.writeStream.format("delta")
        .option("checkpointLocation", str(place.checkpoint))
        .trigger(availableNow=True)
        .start(str(place.path))
    )
    query.awaitTermination()


def _merge_each_batch(spark: SparkSession, place: Place) -> None:
    from delta.tables import DeltaTable

    def merge(batch: Any, _: int) -> None:
        table = DeltaTable.forPath(batch.sparkSession, str(place.path)).alias("t")
        table.merge(batch.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()

    rows = spark.readStream.format("delta").load(str(place.source))
    query = (
        rows.writeStream.foreachBatch(merge)
        .option("checkpointLocation", str(place.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


ENTRIES: tuple[Entry, ...] = (
    sql("INSERT INTO {t} VALUES (9, 'z', 1)", "WRITE", APPEND, *ALL, Z),
    sql("INSERT INTO {p} VALUES (9, 'z', 1)", "WRITE", APPEND, *ALL, Z),
    sql("INSERT INTO {t} PARTITION (p = 1) VALUES (9, 'z')", "WRITE", APPEND, *ALL, Z),
    sql("INSERT INTO {t} BY NAME SELECT 1 AS p, 9 AS id, 'z' AS v", "WRITE", APPEND, *ALL, Z),
    sql("INSERT INTO {t} SELECT 9, 'z', p FROM {t} WHERE id = 1", "WRITE", APPEND, *ALL, Z),
    sql("INSERT OVERWRITE {t} VALUES (9, 'z', 1)", "WRITE", OVERWRITE, Z),
    sql("INSERT OVERWRITE {p} VALUES (9, 'z', 1)", "WRITE", OVERWRITE, Z),
    sql(
        "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (9, 'z')",
        *("WRITE", OVERWRITE, C, Z),
        replaced="(p <=> 1)",
    ),
    sql(
        "INSERT OVERWRITE {t} PARTITION (p) VALUES (9, 'z', 1)",
        *("WRITE", OVERWRITE, C, Z),
        settings=DYNAMIC,
    ),
    sql(
        "INSERT INTO {t} REPLACE WHERE p = 1 VALUES (9, 'z', 1)",
        *("WRITE", OVERWRITE, C, Z),
        replaced="(p = 1)",
    ),
    sql("INSERT INTO {t} REPLACE WHERE id > 1 VALUES (9, 'z', 1)", "WRITE", MUTATE, A, Z),
    sql("TRUNCATE TABLE {t}", "TRUNCATE", OVERWRITE),
    sql("TRUNCATE TABLE {p}", "TRUNCATE", OVERWRITE),
    sql("TRUNCATE TABLE {t} PARTITION (p = 1)", "TRUNCATE", OVERWRITE, C, replaced="(p <=> 1)"),
    sql("UPDATE {t} SET v = 'z' WHERE id = 1", "UPDATE", MUTATE, (1, "z", 1), B, C),
    sql("UPDATE {p} SET v = 'z' WHERE p = 2", "UPDATE", MUTATE, A, B, (3, "z", 2)),
    sql("UPDATE {t} SET id = 0", "UPDATE", MUTATE, (0, "a", 1), (0, "b", 1), (0, "c", 2)),
    sql("DELETE FROM {t} WHERE id = 1", "DELETE", MUTATE, B, C),
    sql("DELETE FROM {p} WHERE p = 1", "DELETE", MUTATE, C),
    sql("DELETE FROM {t}", "DELETE", MUTATE),
    sql(
        "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        *("MERGE", MUTATE, *ALL, Z),
    ),
    sql(
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {s}",
        *("CREATE OR REPLACE TABLE AS SELECT", OVERWRITE, Z),
    ),
    sql(
        "REPLACE TABLE {t} USING delta AS SELECT * FROM {s}",
        *("REPLACE TABLE AS SELECT", OVERWRITE, Z),
    ),
    sql(
        "CREATE OR REPLACE TABLE {t} (id INT, v STRING, p INT) USING delta",
        *("CREATE OR REPLACE TABLE", OVERWRITE),
    ),
    sql("RESTORE TABLE {t} TO VERSION AS OF 1", "RESTORE", UNTAGGED, A, B),
    sql(
        "CREATE OR REPLACE TABLE {t} SHALLOW CLONE {s}",
        *("CLONE", UNTAGGED, Z),
        before=("TRUNCATE TABLE {t}",),
    ),
    sql(
        "ALTER TABLE {t} PARTITION (p = 1) COMPACT MINOR",
        *("COMPACT MINOR", COMPACTION, *ALL),
        start=SCATTERED,
    ),
    sql("ALTER TABLE {p} COMPACT MAJOR", "COMPACT MAJOR", MAJOR_COMPACTION, *ALL),
    sql(
        "ALTER TABLE {t} MERGE SMALLFILES",
        *("MERGE SMALLFILES", COMPACTION, *ALL),
        start=SCATTERED,
    ),
    sql("OPTIMIZE {t}", "OPTIMIZE", COMPACTION, *ALL, start=SCATTERED),
    sql("OPTIMIZE {p} WHERE p = 1", "OPTIMIZE", COMPACTION, *ALL, start=SCATTERED),
    sql("OPTIMIZE {t} ZORDER BY (id)", "OPTIMIZE", COMPACTION, *ALL, start=SCATTERED),
    sql("OPTIMIZE {t}", "OPTIMIZE", COMPACTION, *ALL, start=CLUSTERED, note="CLUSTER BY"),
    sql("OPTIMIZE {t} FULL", "OPTIMIZE", COMPACTION, *ALL, start=CLUSTERED, note="CLUSTER BY"),
    sql("REORG TABLE {t} APPLY (PURGE)", "REORG", COMPACTION, *ALL, (5, "e", 1), before=DEAD_ROWS),
    sql("ALTER TABLE {t} ADD COLUMN w INT", "ADD COLUMNS", METADATA, *((*r, None) for r in ALL)),
    sql("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", "SET TBLPROPERTIES", METADATA, *ALL),
    sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)", "ADD CONSTRAINT", METADATA, *ALL),
    sql("ALTER TABLE {t} CLUSTER BY (v)", "CLUSTER BY", METADATA, *ALL, start=CLUSTERED),
    Entry("SQL", "VACUUM {t}", (("VACUUM START", METADATA), ("VACUUM END", METADATA)), ALL),
    Entry(
        "SQL",
        "INSERT INTO {t} VALUES (9, 'z', 1)",
        (("WRITE", APPEND), ("OPTIMIZE", COMPACTION)),
        (*ALL, Z),
        settings=AUTO_COMPACT,
    ),
    new_sql("CREATE TABLE {n} (id INT) USING delta", "CREATE TABLE", OVERWRITE),
    new_sql(
        "CREATE TABLE {n} USING delta AS SELECT * FROM {s}",
        *("CREATE TABLE AS SELECT", OVERWRITE, Z),
    ),
    new_sql("CREATE TABLE {n} LIKE {t}", "CREATE TABLE", OVERWRITE),
    new_sql("CREATE TABLE {n} SHALLOW CLONE {t}", "CLONE", UNTAGGED, *ALL),
    new("df.write.format('delta').save(new)", "WRITE", APPEND, Z),
    new(
        "df.writeTo(f'delta.`{new}`').using('delta').create()",
        "CREATE TABLE AS SELECT",
        OVERWRITE,
        Z,
    ),
    new(
        "DeltaTable.create(spark).location(new).addColumns(df.schema).execute()",
        *("CREATE TABLE", OVERWRITE),
    ),
    v1("df.write.format('delta').mode('append').saveAsTable(t)", "WRITE", APPEND, *ALL, Z),
    v1("df.write.format('delta').mode('append').save(path)", "WRITE", APPEND, *ALL, Z),
    v1("df.write.insertInto(t)", "WRITE", APPEND, *ALL, Z),
    v1("df.write.format('delta').mode('overwrite').save(path)", "WRITE", OVERWRITE, Z),
    v1(
        "df.write.format('delta').mode('overwrite').saveAsTable(t)",
        *("CREATE OR REPLACE TABLE AS SELECT", OVERWRITE, Z),
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('partitionOverwriteMode', 'dynamic')"
        ".partitionBy('p').saveAsTable(t)",
        *("CREATE OR REPLACE TABLE AS SELECT", OVERWRITE, C, Z),
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceWhere', 'p = 1')"
        ".partitionBy('p').saveAsTable(t)",
        *("WRITE", OVERWRITE, C, Z),
        replaced="p = 1",
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceWhere', 'id > 1')"
        ".partitionBy('p').saveAsTable(t)",
        *("WRITE", MUTATE, A, Z),
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceUsing', 'p')"
        ".partitionBy('p').saveAsTable(t)",
        *("WRITE", MUTATE, C, Z),
    ),
    v1("df.write.insertInto(t, overwrite=True)", "WRITE", OVERWRITE, Z),
    v1(
        "df.write.mode('overwrite').option('replaceWhere', 'p = 1').insertInto(t)",
        *("WRITE", OVERWRITE, Z),
        note="Delta does not look at the option",
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceWhere', 'p = 1').save(path)",
        *("WRITE", OVERWRITE, C, Z),
        replaced="p = 1",
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceWhere', 'id > 1').save(path)",
        *("WRITE", MUTATE, A, Z),
    ),
    v1(
        "df.write.format('delta').mode('overwrite')"
        ".option('partitionOverwriteMode', 'dynamic').save(path)",
        *("WRITE", OVERWRITE, C, Z),
    ),
    v1(
        "df.write.mode('overwrite').insertInto(t)",
        *("WRITE", OVERWRITE, C, Z),
        settings=DYNAMIC,
    ),
    v1(
        "df.write.format('delta').mode('overwrite').option('replaceUsing', 'p').save(path)",
        *("WRITE", MUTATE, C, Z),
    ),
    v1(
        "df.alias('s').write.format('delta').mode('overwrite')"
        ".option('targetAlias', 't').option('replaceOn', 't.p = s.p').save(path)",
        *("WRITE", MUTATE, C, Z),
    ),
    v2("df.writeTo(t).append()", "WRITE", APPEND, *ALL, Z),
    v2("df.writeTo(t).overwrite(lit(True))", "WRITE", OVERWRITE, Z),
    v2("df.writeTo(t).overwrite(col('p') == 1)", "WRITE", OVERWRITE, C, Z, replaced="(p = 1)"),
    v2("df.writeTo(t).overwrite(col('id') > 1)", "WRITE", MUTATE, A, Z),
    v2("df.writeTo(t).overwritePartitions()", "WRITE", OVERWRITE, C, Z),
    v2(
        "df.writeTo(t).using('delta').option('partitionOverwriteMode', 'dynamic')"
        ".partitionedBy(col('p')).createOrReplace()",
        *("CREATE OR REPLACE TABLE AS SELECT", OVERWRITE, Z),
    ),
    v2(
        "df.writeTo(t).using('delta').createOrReplace()",
        *("CREATE OR REPLACE TABLE AS SELECT", OVERWRITE, Z),
    ),
    v2("df.writeTo(t).using('delta').replace()", "REPLACE TABLE AS SELECT", OVERWRITE, Z),
    api("table.update('id = 1', {'v': lit('z')})", "UPDATE", MUTATE, (1, "z", 1), B, C),
    api("table.delete('id = 1')", "DELETE", MUTATE, B, C),
    api("table.delete()", "DELETE", MUTATE),
    api(
        "table.alias('t').merge(df.alias('s'), 't.id = s.id').whenNotMatchedInsertAll().execute()",
        *("MERGE", MUTATE, *ALL, Z),
    ),
    api("table.optimize().executeCompaction()", "OPTIMIZE", COMPACTION, *ALL, start=SCATTERED),
    api(
        "table.optimize().where('p = 1').executeZOrderBy('id')",
        *("OPTIMIZE", COMPACTION, *ALL),
        start=SCATTERED,
    ),
    api("table.restoreToVersion(1)", "RESTORE", UNTAGGED, A, B),
    api(
        "DeltaTable.createOrReplace(spark).tableName(t).addColumns(df.schema).execute()",
        *("CREATE OR REPLACE TABLE", OVERWRITE),
    ),
    stream(
        "stream.writeStream.format('delta').start(path)",
        *("STREAMING UPDATE", APPEND, *ALL, Z),
        run=_append,
    ),
    stream(
        "stream.writeStream.format('delta').outputMode('complete').toTable(t)",
        *("STREAMING UPDATE", OVERWRITE, Z),
        run=_complete,
    ),
    stream(
        "stream.writeStream.foreachBatch(merge).start()",
        *("MERGE", MUTATE, *ALL, Z),
        run=_merge_each_batch,
        note="with a MERGE",
    ),
)
