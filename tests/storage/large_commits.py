"""Commits so large that Interlock first writes them to a file of their own in the log's folder."""

from __future__ import annotations

SIZE = 1_200_000


def large_append(location: str, row: int, size: int = SIZE) -> str:
    """Return the Python that appends a row to a table, for a driver process.

    Args:
        location: of the table, which has the columns id and v
        row: its id
        size: how many bytes the commit has, and some more

    """
    new = f"spark.sql(\"SELECT {row} AS id, 'large' AS v\").write.format('delta').mode('append')"
    return f"{new}.option('userMetadata', 'x' * {size}).save('{location}')"
