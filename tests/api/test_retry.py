"""`interlock.retry`: what it runs again, how often, and after which delays. Needs no Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable

import interlock
import pytest
from interlock import errors

LOST = interlock.ConcurrentAppendError("[C] lost\nmore")
CURABLE = (
    errors.ConcurrentAppendError,
    errors.ConcurrentDeleteReadError,
    errors.ConcurrentDeleteDeleteError,
    errors.ConcurrentWriteError,
    errors.MetadataChangedError,
    errors.ProtocolChangedError,
)


class Work:
    """Raises what it is given, one after the other, and then returns 'done'."""

    def __init__(self, *raised: Exception) -> None:
        self._raised = list(raised)
        self.runs = 0

    def __call__(self, *_: object) -> str:
        self.runs += 1
        if self._raised:
            raise self._raised.pop(0)
        return "done"


@pytest.fixture(autouse=True)
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays, which nobody waits for."""
    waited: list[float] = []
    monkeypatch.setattr("interlock._retries.sleep", waited.append)
    return waited


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The ranges out of which delays are drawn; the longest is taken."""
    ranges: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        ranges.append((low, high))
        return high

    monkeypatch.setattr("interlock._retries.uniform", uniform)
    return ranges


@pytest.mark.parametrize("kind", CURABLE)
def test_a_conflict_is_run_again(kind: type[interlock.ConflictError]) -> None:
    work = Work(kind("lost"), kind("lost"))
    assert interlock.retry(work) == "done"
    assert work.runs == 3


@pytest.mark.parametrize(
    "error",
    [
        interlock.CommitStateUnknown("unknown"),
        interlock.ConcurrentTransactionError("the other query's"),
        interlock.UsageError("refused"),
        ValueError("another"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_is(error: Exception, delays: list[float]) -> None:
    work = Work(error)
    with pytest.raises(type(error)) as caught:
        interlock.retry(work)
    assert caught.value is error
    assert (work.runs, delays) == (1, [])


def test_an_unknown_outcome_after_a_conflict_ends_it() -> None:
    work = Work(LOST, interlock.CommitStateUnknown("unknown"))
    with pytest.raises(interlock.CommitStateUnknown):
        interlock.retry(work)
    assert work.runs == 2


def test_the_last_error_is_raised_and_nobody_waits_for_it(delays: list[float]) -> None:
    kept = [interlock.ConcurrentAppendError(str(number)) for number in range(4)]
    work = Work(*kept)
    with pytest.raises(interlock.ConcurrentAppendError) as caught:
        interlock.retry(work, attempts=3)
    assert caught.value is kept[2]
    assert (work.runs, len(delays)) == (3, 2)


def test_one_attempt_is_none_more(delays: list[float]) -> None:
    work = Work(LOST)
    with pytest.raises(interlock.ConflictError):
        interlock.retry(work, attempts=1)
    assert (work.runs, delays) == (1, [])


def test_delays_are_random_from_zero_to_a_doubling_bound(
    delays: list[float], longest: list[tuple[float, float]]
) -> None:
    interlock.retry(Work(*[LOST] * 5), attempts=6, backoff=0.5)
    assert longest == [(0, 0.5), (0, 1), (0, 2), (0, 4), (0, 8)]
    assert delays == [0.5, 1, 2, 4, 8]


def test_delays_are_bounded(delays: list[float], longest: list[tuple[float, float]]) -> None:
    interlock.retry(Work(*[LOST] * 2000), attempts=2001, backoff=20)
    assert delays == [20, *[30] * 1999]


def test_each_conflict_is_logged(
    caplog: pytest.LogCaptureFixture, longest: list[tuple[float, float]]
) -> None:
    with caplog.at_level(logging.WARNING, logger="interlock"):
        interlock.retry(Work(LOST), attempts=3, backoff=0.25)
    assert caplog.messages == ["Attempt 1 of 3 lost, again in 0.25 s: [C] lost"]


def test_the_decorator_keeps_arguments_result_and_name() -> None:
    seen: list[tuple[int, str]] = []

    @interlock.retry(attempts=2, backoff=0)
    def load(day: int, *, into: str) -> int:
        """Load a day."""
        seen.append((day, into))
        if len(seen) == 1:
            raise LOST
        return day

    assert load(7, into="t") == 7
    assert seen == [(7, "t")] * 2
    assert (load.__name__, load.__doc__) == ("load", "Load a day.")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: interlock.retry(Work(), attempts=0), "attempts must be at least 1, not 0"),
        (lambda: interlock.retry(backoff=-1), "backoff must be a number of seconds >= 0"),
        (lambda: interlock.retry(backoff=float("nan")), "backoff must be a number of seconds"),
    ],
)
def test_wrong_options_are_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
