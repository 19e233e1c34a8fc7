"""Runs the tests without a mutation, then with each: sbt and pytest work side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tools.mutants.copies import Copy
from tools.mutants.mutations import Mutation, located
from tools.mutants.pytests import Pytests
from tools.mutants.sbt import BuildError, HungError, Said, Sbt

LIMIT = 180.0
_LIMIT_OF_BASELINE = 3600.0

# What a mutation takes beside its test, in seconds: compiling, or starting a session.
_COMPILING, _STARTING = 6.0, 20.0


class BaselineError(Exception):
    """A test that fails without any mutation, so that it would catch all."""


class Outcome(Enum):
    """What became of a mutation."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Result:
    """What became of a mutation; `told` is the test that failed, or the error."""

    mutation: Mutation
    outcome: Outcome
    told: str
    seconds: float


class Run:
    """One run over some mutations.

    Jars are built while pytest is at work; the suites that sbt runs by itself come behind them.

    Args:
        copy: the copy of the tree that is mutated
        sbt: an sbt in that copy
        mutations: those to be run
        say: takes each line that is to be shown

    """

    def __init__(
        self, copy: Copy, sbt: Sbt, mutations: Sequence[Mutation], say: Callable[[str], None]
    ) -> None:
        self._copy, self._sbt, self._say = copy, sbt, say
        self._pytests = Pytests(copy.python, copy.folder)
        self._files = located(mutations, copy.folder)
        self._in_sbt = [mutation for mutation in mutations if mutation.suite]
        self._in_pytest = [mutation for mutation in mutations if not mutation.suite]

    def results(self) -> list[Result]:
        """Run all.

        Raises:
            BaselineError: where a test fails without a mutation
            BuildError: where the tree does not build, or a test cannot begin
            HungError: where a test does not end without a mutation

        """
        with ThreadPoolExecutor(1) as beside:
            try:
                return self._results(beside)
            except BaseException:
                beside.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                self._sbt.close()
                self._pytests.close()

    def _results(self, beside: ThreadPoolExecutor) -> list[Result]:
        baseline: Future[None] | None = None
        if self._in_pytest:
            self._copy.make_environment()
            self._copy.install(self._built("baseline"))
            baseline = beside.submit(self._baseline_of_pytest)
        self._baseline_of_suites()
        results: list[Result] = []
        waiting: list[Future[Result]] = []
        for mutation in self._in_pytest:
            _raise_failed(baseline)
            started = time.monotonic()
            try:
                jar = self._jar_with(mutation)
            except BuildError as error:
                results.append(self._shown(_error(mutation, error, started)))
            else:
                waiting.append(beside.submit(self._in_session, mutation, jar))
        for mutation in self._in_sbt:
            _raise_failed(baseline)
            results.append(self._shown(self._in_suite(mutation)))
        self._sbt.close()
        if baseline is not None:
            baseline.result()
        return results + [future.result() for future in waiting]

    def _baseline_of_suites(self) -> None:
        for project in sorted({mutation.test.partition("/")[0] for mutation in self._in_sbt}):
            self._build(f"{project}/Test/compile", _LIMIT_OF_BASELINE)
        seconds = {}
        for test, mutation in sorted(
            {mutation.test: mutation for mutation in self._in_sbt}.items()
        ):
            started = time.monotonic()
            said = self._suite(mutation, _LIMIT_OF_BASELINE)
            if not said.ok:
                raise BaselineError(f"{test} fails without a mutation:\n{said.errors}")
            seconds[test] = time.monotonic() - started
            self._say(f"{test} passes without a mutation in {seconds[test]:.0f} s")
        if seconds:
            expected = sum(seconds[mutation.test] + _COMPILING for mutation in self._in_sbt)
            self._say(_estimate(len(self._in_sbt), "in suites", expected))

    def _baseline_of_pytest(self) -> None:
        tests = sorted({mutation.test for mutation in self._in_pytest})
        seconds = self._pytests.run(tests, _LIMIT_OF_BASELINE, to_the_end=True)
        if seconds.failed:
            failed = "\n".join(seconds.failed)
            raise BaselineError(f"These tests fail without a mutation:\n{failed}")
        each = seconds.seconds / len(tests) + _STARTING
        self._say(_estimate(len(self._in_pytest), "in sessions", each * len(self._in_pytest)))

    def _in_suite(self, mutation: Mutation) -> Result:
        started = time.monotonic()
        try:
            with self._mutated(mutation):
                self._build(f"{mutation.test.partition('/')[0]}/Test/compile", LIMIT)
                said = self._suite(mutation, LIMIT)
        except (BuildError, HungError) as error:
            return _error(mutation, error, started)
        if said.ok:
            return _result(mutation, Outcome.SURVIVED, mutation.test, started)
        failed = said.failed_test(mutation.test_of_suite)
        if failed is None:
            return _error(mutation, BuildError(said.errors), started)
        return _result(mutation, Outcome.KILLED, failed, started)

    def _in_session(self, mutation: Mutation, jar: Path) -> Result:
        started = time.monotonic()
        try:
            self._copy.install(jar)
            ran = self._pytests.run([mutation.test], LIMIT)
        except (BuildError, HungError) as error:
            return self._shown(_error(mutation, error, started))
        if not ran.failed:
            return self._shown(_result(mutation, Outcome.SURVIVED, mutation.test, started))
        return self._shown(_result(mutation, Outcome.KILLED, ran.failed[0], started))

    def _suite(self, mutation: Mutation, limit: float) -> Said:
        assert mutation.suite is not None
        (project, suite), name = mutation.suite, mutation.test_of_suite
        only = "" if name is None else f' -- "*.{suite}.{name}"'
        said = self._sbt.run(f"{project}/testOnly *.{suite}{only}", limit)
        if said.ok and any("No tests to run" in line for line in said.lines):
            raise BuildError(f"there is no suite {mutation.test}")
        if said.ok and name is not None and not any(name in line for line in said.lines):
            raise BuildError(f"there is no test {mutation.test}")
        return said

    def _jar_with(self, mutation: Mutation) -> Path:
        with self._mutated(mutation):
            return self._built(mutation.name)

    def _built(self, name: str) -> Path:
        self._build("spark/copyJar", LIMIT)
        return self._copy.built_jar(name)

    def _build(self, task: str, limit: float) -> None:
        """Run a task of the build, which is no test: if it does not end, nothing is caught."""
        try:
            said = self._sbt.run(task, limit)
        except HungError:
            raise BuildError(f"{task} does not end") from None
        if not said.ok:
            raise BuildError(said.errors)

    def _mutated(self, mutation: Mutation) -> AbstractContextManager[None]:
        return self._copy.mutated(mutation, self._files[mutation.file])

    def _shown(self, result: Result) -> Result:
        self._say(line(result))
        return result


def line(result: Result) -> str:
    """Say what became of a mutation."""
    by = "by " if result.outcome is Outcome.KILLED else ""
    return (
        f"{result.mutation.name}: {result.outcome.value} {by}{result.told} "
        f"in {result.seconds:.0f} s"
    )


def _result(mutation: Mutation, outcome: Outcome, told: str, started: float) -> Result:
    return Result(mutation, outcome, told, time.monotonic() - started)


def _error(mutation: Mutation, error: Exception, started: float) -> Result:
    """Say what kept a test from telling."""
    hung = isinstance(error, HungError)
    told = f"{mutation.test}, which does not end" if hung else str(error)
    return _result(mutation, Outcome.ERROR, told, started)


def _raise_failed(baseline: Future[None] | None) -> None:
    """Give up as soon as it is known that the tests fail without a mutation."""
    if baseline is not None and baseline.done():
        baseline.result()


def _estimate(count: int, where: str, seconds: float) -> str:
    return f"{count} mutations {where}: about {seconds / 60:.0f} min"
