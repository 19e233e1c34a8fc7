"""Runs the tests without a mutation, then with each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum

from tools.mutants.copies import Copy
from tools.mutants.mutations import Mutation, located
from tools.mutants.pytests import Pytests
from tools.mutants.sbt import BuildError, HungError, Said, Sbt

LIMIT = 180.0
_LIMIT_OF_BASELINE = 3600.0


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
    """One run over some mutations, one after the other.

    Args:
        copy: the copy of the tree that is mutated
        sbt: an sbt in that copy
        mutations: those to be run
        say: takes each line that is to be shown

    """

    def __init__(
        self, copy: Copy, sbt: Sbt, mutations: Sequence[Mutation], say: Callable[[str], None]
    ) -> None:
        self._copy, self._sbt, self._mutations, self._say = copy, sbt, mutations, say
        self._pytests = Pytests(copy.python, copy.folder)
        self._files = located(mutations, copy.folder)

    def results(self) -> list[Result]:
        """Run all.

        Raises:
            BaselineError: where a test fails without a mutation
            BuildError: where the tree does not build, or a test cannot begin
            HungError: where a test does not end without a mutation

        """
        try:
            self._baseline_of_suites()
            self._baseline_of_pytest()
            return [self._result(mutation) for mutation in self._mutations]
        finally:
            self._sbt.close()
            self._pytests.close()

    def _baseline_of_suites(self) -> None:
        suites = {mutation.test: mutation for mutation in self._mutations if mutation.suite}
        for project in sorted({test.partition("/")[0] for test in suites}):
            self._build(f"{project}/Test/compile", _LIMIT_OF_BASELINE)
        for test, mutation in sorted(suites.items()):
            said = self._suite(mutation, _LIMIT_OF_BASELINE)
            if not said.ok:
                raise BaselineError(f"{test} fails without a mutation:\n{said.errors}")

    def _baseline_of_pytest(self) -> None:
        tests = sorted({mutation.test for mutation in self._mutations if not mutation.suite})
        if not tests:
            return
        self._copy.make_environment()
        self._install()
        failed = self._pytests.run(tests, _LIMIT_OF_BASELINE, to_the_end=True)
        if failed:
            raise BaselineError("\n".join(["These tests fail without a mutation:", *failed]))

    def _result(self, mutation: Mutation) -> Result:
        started = time.monotonic()
        try:
            outcome, told = (self._in_suite if mutation.suite else self._in_session)(mutation)
        except BuildError as error:
            outcome, told = Outcome.ERROR, str(error)
        except HungError:
            outcome, told = Outcome.ERROR, f"{mutation.test}, which does not end"
        result = Result(mutation, outcome, told, time.monotonic() - started)
        self._say(line(result))
        return result

    def _in_suite(self, mutation: Mutation) -> tuple[Outcome, str]:
        with self._mutated(mutation):
            self._build(f"{mutation.test.partition('/')[0]}/Test/compile", LIMIT)
            said = self._suite(mutation, LIMIT)
        if said.ok:
            return Outcome.SURVIVED, mutation.test
        failed = said.failed_test(mutation.test_of_suite)
        return (Outcome.KILLED, failed) if failed else (Outcome.ERROR, said.errors)

    def _in_session(self, mutation: Mutation) -> tuple[Outcome, str]:
        with self._mutated(mutation):
            self._install()
        failed = self._pytests.run([mutation.test], LIMIT)
        return (Outcome.KILLED, failed[0]) if failed else (Outcome.SURVIVED, mutation.test)

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

    def _install(self) -> None:
        """Build the jar, and put it in the place of the one that is installed."""
        self._build("spark/copyJar", LIMIT)
        self._copy.install_jar()

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


def line(result: Result) -> str:
    """Say what became of a mutation."""
    by = "by " if result.outcome is Outcome.KILLED else ""
    return (
        f"{result.mutation.name}: {result.outcome.value} {by}{result.told} "
        f"in {result.seconds:.0f} s"
    )
