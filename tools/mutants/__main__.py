"""`make mutants`: breaks the rules of the code one by one, and asks that a test fails for each."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from tools.mutants import copies, mutations, runs
from tools.mutants.mutations import LIST, Mutation, MutationError
from tools.mutants.runs import BaselineError, Outcome, Result
from tools.mutants.sbt import BuildError, HungError, Sbt

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the mutations that are asked for; 1 if a test has not caught one, or could not."""
    options = _options()
    signal.signal(signal.SIGTERM, _end)
    started = time.monotonic()
    try:
        chosen = _chosen(options)
        with TemporaryDirectory(prefix="interlock-mutants-") as folder:
            copy = copies.Copy(ROOT, Path(folder).resolve())
            sbt = Sbt(shlex.split(options.sbt), copy.folder)
            results = runs.Run(copy, sbt, chosen, _say).results()
    except (MutationError, BaselineError, BuildError) as error:
        _say(str(error))
        return 1
    except HungError:
        _say("a test does not end without a mutation")
        return 1
    _say(_table(results))
    _say(f"{len(results)} mutations in {(time.monotonic() - started) / 60:.1f} min")
    return int(any(result.outcome is not Outcome.KILLED for result in results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="those with this in their name or file; may be given several times",
    )
    parser.add_argument("--quick", action="store_true", help="those whose test needs no Spark")
    parser.add_argument(
        "--some", type=int, metavar="N", help="N of them, chosen by the id of the Git commit"
    )
    parser.add_argument("--sbt", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Mutation]:
    """Return what the options ask for.

    Raises:
        MutationError: where they ask for none; where any of the list does not fit the sources,
            whether it is asked for or not

    """
    listed = mutations.read(LIST.read_text(encoding="utf-8"))
    mutations.located(listed, ROOT)
    chosen = [
        mutation
        for mutation in listed
        if (mutation.is_quick or not options.quick) and _is_asked_for(mutation, options.only)
    ]
    if not chosen:
        raise MutationError("no mutation is called so")
    if options.some is None:
        return chosen
    return mutations.some(chosen, options.some, copies.turn(ROOT))


def _is_asked_for(mutation: Mutation, only: Sequence[str] | None) -> bool:
    return only is None or any(
        text.lower() in f"{mutation.name} {mutation.file}".lower() for text in only
    )


def _table(results: Sequence[Result]) -> str:
    """Show how many were killed by file, and behind that what was not."""
    files = sorted({result.mutation.file for result in results})
    counted = Counter((result.mutation.file, result.outcome) for result in results)
    width = max(map(len, files))
    rows = [
        f"{name:{width}}" + "".join(f"{counted[name, outcome]:10}" for outcome in Outcome)
        for name in files
    ]
    head = " " * width + "".join(f"{outcome.value:>10}" for outcome in Outcome)
    left = [runs.line(result) for result in results if result.outcome is not Outcome.KILLED]
    return "\n".join(["", head, *rows, "", *left])


def _say(text: str) -> None:
    print(text, flush=True)


def _end(*_: object) -> NoReturn:
    """Clean up when ended, as when interrupted."""
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
