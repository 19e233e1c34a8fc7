"""Conflict policies for Delta tables, enforced where Spark commits.

    spark = interlock.configure(SparkSession.builder).getOrCreate()
    flights = interlock.table(spark, "db.flights")
    flights.between(versions=(3, None)).show()

Importing this package does not import PySpark or any other large package; the names below are
loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from interlock._artifacts import __version__ as __version__
from interlock._artifacts import jar_path as jar_path
from interlock._artifacts import maven_coordinates as maven_coordinates

if TYPE_CHECKING:
    from interlock._public import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    public = {} if name.startswith("_") else vars(import_module("interlock._public"))
    if name not in public:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return public[name]


def __dir__() -> list[str]:
    lazy = [name for name in vars(import_module("interlock._public")) if name[0] != "_"]
    return sorted(["__version__", "jar_path", "maven_coordinates", *lazy])
