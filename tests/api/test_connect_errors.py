"""What the Connect client makes of a server's answer; `tests/api` has the errors of a real one."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import delta.exceptions
import interlock
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from interlock import _artifacts, _conversion, errors
from interlock._conversion import texts
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.proto import FetchErrorDetailsResponse

core: Any = import_module("pyspark.sql.connect.client.core")
RUNTIME = ["java.lang.RuntimeException", "java.lang.Exception"]
Throwable = tuple[list[str], str, str, dict[str, str]]
JUDGED = {
    "policy": "maxcompute_delta",
    "rule": "any concurrent commit",
    "operation": "RESTORE",
    "operationClass": "OVERWRITE",
    "readVersion": "7",
    "winnerVersion": "8",
    "table": "db.t",
}


@pytest.fixture(autouse=True)
def installed() -> None:
    _conversion.install_connect()


def header(names: list[str], **others: str) -> Any:
    return ErrorInfo(reason=names[0], metadata={"classes": json.dumps(names), **others})


def answer(*chain: Throwable) -> Any:
    """What the server tells of an exception and its causes: classes, message, condition, rest."""
    response = FetchErrorDetailsResponse(root_error_idx=0)
    for number, (names, message, condition, parameters) in enumerate(chain):
        error = response.errors.add(error_type_hierarchy=names, message=message)
        if number + 1 < len(chain):
            error.cause_idx = number + 1
        if condition:
            error.spark_throwable.error_class = condition
            error.spark_throwable.message_parameters.update(parameters)
    return response


def converted(*chain: Throwable) -> PySparkException:
    error: PySparkException = core.convert_exception(
        header(chain[0][0]), "cut off", answer(*chain), False
    )
    assert isinstance(error, SparkConnectGrpcException)
    return error


def conflict(name: str) -> list[str]:
    return [
        f"io.interlock.spark.errors.{name}Conflict",
        f"io.delta.exceptions.{name}Exception",
        *RUNTIME,
    ]


@pytest.mark.parametrize(
    "name", ["ConcurrentAppend", "ConcurrentDeleteRead", "ConcurrentDeleteDelete"]
)
def test_each_conflict_is_also_deltas_own(name: str) -> None:
    error = converted((conflict(name), "[C] text", "C", JUDGED))
    assert type(error).__name__ == f"{name}Error"
    assert isinstance(error, getattr(errors, f"{name}Error"))
    assert isinstance(error, getattr(delta.exceptions, f"{name}Exception"))


@pytest.mark.parametrize(
    "name", ["ConcurrentWrite", "ConcurrentTransaction", "MetadataChanged", "ProtocolChanged"]
)
def test_deltas_conflicts_are_ours(name: str) -> None:
    error = converted(([f"io.delta.exceptions.{name}Exception", *RUNTIME], "[D] text", "D", {}))
    assert isinstance(error, getattr(errors, f"{name}Error"))
    assert isinstance(error, interlock.ConflictError)
    assert (error.condition, error.policy, error.winner_version) == ("D", None, None)


def test_the_parameters_become_attributes() -> None:
    job_failed: Throwable = (RUNTIME, "Job aborted.", "", {})
    error = converted(job_failed, (conflict("ConcurrentWrite"), "[C] text", "C", JUDGED))
    assert isinstance(error, interlock.ConcurrentWriteError)
    assert (error.read_version, error.winner_version) == (7, 8)
    assert (error.rule, error.table) == ("any concurrent commit", "db.t")
    assert (error.winner_class, error.why) == (None, None)
    assert str(error) == error.getMessage() == "[C] text"


def test_an_unknown_outcome() -> None:
    unknown = ["io.interlock.spark.errors.CommitStateUnknownException", *RUNTIME]
    error = converted((unknown, "[U] text", "INTERLOCK_COMMIT_STATE_UNKNOWN", {"txnId": "x"}))
    assert isinstance(error, interlock.CommitStateUnknown)
    assert not isinstance(error, interlock.ConflictError)
    assert error.condition == "INTERLOCK_COMMIT_STATE_UNKNOWN"
    assert not hasattr(error, "winner_version")  # an attribute of conflicts


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("INTERLOCK_VERSION_MISMATCH", interlock.VersionMismatchError),
        ("INTERLOCK_UNKNOWN_POLICY", interlock.UsageError),
    ],
)
def test_usage_errors(condition: str, kind: type[Exception]) -> None:
    usage = ["io.interlock.spark.errors.InterlockException", *RUNTIME]
    assert type(converted((usage, "text", condition, {}))).__bases__[0] is kind


def test_a_server_that_tells_no_details() -> None:
    given = header(
        conflict("ConcurrentAppend"),
        errorClass="INTERLOCK_CONCURRENT_APPEND",
        sqlState="2D521",
        messageParameters=json.dumps(JUDGED),
    )
    error = core.convert_exception(given, "the beginning", None, False)
    assert isinstance(error, interlock.ConcurrentAppendError)
    assert (error.message, error.sqlstate, error.winner_version) == ("the beginning", "2D521", 8)
    del given.metadata["messageParameters"]
    error = core.convert_exception(given, "the beginning", None, False)
    assert isinstance(error, interlock.ConcurrentAppendError)
    assert error.winner_version is None


def test_the_servers_stack_trace_is_kept_apart() -> None:
    names = conflict("ConcurrentAppend")
    told = answer((names, "[C] text", "C", JUDGED))
    told.errors[0].stack_trace.add(
        declaring_class="C", method_name="m", file_name="C.scala", line_number=1
    )
    error = core.convert_exception(header(names), "cut off", told, True)
    assert str(error) == error.getMessage() == "[C] text"
    assert error.getStackTrace() == f"{names[0]}\n\tat C.m(C.scala:1)"


def test_other_errors_stay_what_they_are() -> None:
    assert not isinstance(converted((RUNTIME, "text", "", {})), interlock.InterlockError)
    quoted = "io.delta.exceptions.ConcurrentAppendException [INTERLOCK_CONCURRENT_APPEND] text"
    assert not isinstance(converted((RUNTIME, quoted, "", {})), interlock.InterlockError)


def quoted(condition: str, **parameters: str) -> str:
    """A traceback that ends with the message of `condition`."""
    entry = _artifacts.error_conditions()[condition]
    message = f"[{condition}] " + "\n".join(entry["message"])
    for key, value in parameters.items():
        message = message.replace(f"<{key}>", value)
    return f"Traceback:\n  raise x\nX: (Y) {message} SQLSTATE: {entry['sqlState']}\n\nJVM: ..."


def test_a_text_tells_what_the_message_does() -> None:
    given = {**JUDGED, "scope": "p = 'a.b'", "winnerOperation": "WRITE", "apart": ""}
    given |= {"lets": "lets (some) pass", "winnerClass": "APPEND", "ruling": "a rule."}
    found = texts.find(quoted("INTERLOCK_CONCURRENT_DELETE_READ", **given, why="it (must) fail"))
    assert found is not None
    assert found.kind is interlock.ConcurrentDeleteReadError
    assert found.facts["scope"] == "p = 'a.b'"
    assert (found.facts["winner_version"], found.facts["why"]) == (8, "it (must) fail")
    assert found.facts["winner_class"] == "APPEND"
    assert found.facts["predicate"] is None
    assert found.facts["message"].endswith("rule any concurrent commit: a rule.. SQLSTATE: 2D521")


def test_a_text_of_another_version_tells_the_condition() -> None:
    found = texts.find("X: [INTERLOCK_CONCURRENT_APPEND] as it was once\n\nJVM: ...")
    assert found is not None
    assert found.kind is interlock.ConcurrentAppendError
    assert found.facts["message"] == "[INTERLOCK_CONCURRENT_APPEND] as it was once"
    assert found.facts["sqlstate"] == "2D521"


def test_a_text_with_deltas_own_conflict() -> None:
    found = texts.find("X: (io.delta.exceptions.MetadataChangedException) [DELTA_M] text\n\nJVM")
    assert found is not None
    assert found.kind is interlock.MetadataChangedError
    assert found.facts == {"message": "[DELTA_M] text", "condition": "DELTA_M"}
    assert texts.find("X: (java.lang.RuntimeException) [DELTA_M] text") is None
