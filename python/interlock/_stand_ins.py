"""Base classes for `interlock.errors` where PySpark is not installed, or Delta's Python package.

They have the names of the classes that they replace; they are never raised.
"""

# ruff: noqa: N803, N818

from __future__ import annotations


class PySparkException(Exception):
    """Take the arguments of PySpark's class and keep the message."""

    def __init__(
        self,
        message: str | None = None,
        errorClass: str | None = None,
        messageParameters: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)


class ConcurrentAppendException(Exception):
    pass


class ConcurrentDeleteReadException(Exception):
    pass


class ConcurrentDeleteDeleteException(Exception):
    pass


class ConcurrentWriteException(Exception):
    pass


class ConcurrentTransactionException(Exception):
    pass


class MetadataChangedException(Exception):
    pass


class ProtocolChangedException(Exception):
    pass
