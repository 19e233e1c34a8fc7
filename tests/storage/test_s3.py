"""Tables on S3 with the default coordinator: S3A's conditional create against a real server."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.blocks.several_tables import PATIENCE_SECONDS, die_at
from tests.kit import command
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.eventually import eventually
from tests.kit.log_replay import check_log
from tests.kit.spark_version import s3_without_database
from tests.kit.support import (
    Table,
    commit_file,
    deltalake_rows,
    latest_version,
    put_back,
    unknown_files,
    versions,
)
from tests.kit.tcp_proxy import Proxy
from tests.postgres.database import NAME, Database, database
from tests.postgres.postgres import VERSIONS
from tests.storage import s3
from tests.storage.large_commits import SIZE, large_append

pytestmark = s3_without_database

DONE = Answer()

# In the body of the request that makes a version, and in no other.
STAMP = b'"interlock.coordinator":"filesystem/'

# A process writes a note beside the log of a table on which it runs a job, and renews it: it asks
# for the status of `_delta_log`, and puts the note. When it does is not up to the job.
NOTES = re.compile(
    r"_interlock(/|%2F)running|/_delta_log$|max-keys=2&prefix=[^&]*%2F_delta_log%2F$"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    with s3.start(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(server: s3.Server) -> Iterator[Proxy]:
    found = Proxy(server.port)
    yield found
    found.close()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with database(max(VERSIONS), tmp_path_factory.mktemp("postgres")) as found:
        yield found


@pytest.fixture(scope="module")
def both(
    server: s3.Server, proxy: Proxy, postgres: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[DriverProcess]]:
    """Two processes that reach the server through the proxy."""
    settings = {**server.settings(port=proxy.port), **postgres.settings("both", proxied=False)}
    folder = tmp_path_factory.mktemp("drivers")
    with driver_processes(folder, "interlock", "interlock", settings=settings) as drivers:
        yield drivers


def requests(server: s3.Server) -> list[tuple[str, str]]:
    """Method and address of each request until now, but for notes of running jobs."""
    return [(method, path) for method, path in server.requests() if not NOTES.search(path)]


def rows_of(table: Table) -> tuple[tuple[object, ...], ...]:
    """The rows by delta-rs, once the log is found to be right."""
    check_log(table)
    found = versions(table)
    assert found == list(range(len(found)))
    return tuple(sorted(deltalake_rows(table)))


@pytest.fixture
def table(server: s3.Server, both: list[DriverProcess], request: pytest.FixtureRequest) -> Table:
    """A table with the rows 1a and 2b in one file, at version 1."""
    return make_table(both[0], server.table(re.sub(r"\W+", "-", request.node.name)))


def make_table(driver: DriverProcess, table: Table) -> Table:
    properties = "'interlock.policy' = 'row_level', 'delta.enableDeletionVectors' = 'true'"
    columns = "(id INT, v STRING)"
    create = f"CREATE TABLE {table} {columns} USING delta TBLPROPERTIES ({properties})"
    assert driver.run(create) == DONE
    assert driver.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')") == DONE
    return table


@pytest.fixture
def impatient_table(
    server: s3.Server, both: list[DriverProcess], request: pytest.FixtureRequest
) -> Table:
    """The same in the bucket in which S3A does not wait long for an answer."""
    assert both[0].run(s3.ALLOW_IMPATIENCE) == DONE
    name = re.sub(r"\W+", "-", request.node.name)
    return make_table(both[0], server.table(name, s3.IMPATIENT))


def test_statements(both: list[DriverProcess], table: Table) -> None:
    driver = both[0]
    for statement in (
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '6')",
        f"INSERT INTO {table} VALUES (3, 'c')",
        f"UPDATE {table} SET v = 'A' WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 2",
        f"OPTIMIZE {table}",
        f"INSERT INTO {table} SELECT id + 10, v FROM {table} VERSION AS OF 1",
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        f"VACUUM {table} RETAIN 0 HOURS",
    ):
        assert driver.run(statement) == DONE
    assert rows_of(table) == ((1, "A"), (3, "c"), (11, "a"), (12, "b"))
    assert list(table.path.glob("_delta_log/.*")) == []
    (_,) = eventually(lambda: list(table.path.glob("_delta_log/*.checkpoint*.parquet")), 20)


def test_a_commit_is_one_conditional_put_without_listing_or_copy(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    for row in (3, 4):
        before = len(requests(server))
        assert both[0].run(f"INSERT INTO {table} VALUES ({row}, 'x')") == DONE
    made = requests(server)[before:]
    log = f"/{s3.BUCKET}/{table.path.name}/_delta_log"
    head = [("HEAD", f"{log}/{version:020}.json") for version in range(4)]
    of_log = [(method, path) for method, path in made if path.startswith(f"{log}/0")]
    # Whether the table is what it was: when it is loaded, and when the transaction begins.
    assert sorted(of_log[:6]) == sorted([head[0], head[2], head[3]] * 2)
    assert of_log[6:] == [
        *[head[2]] * 3,  # nobody has replaced the table or the commit
        ("PUT", f"{log}/{3:020}.json"),
        head[3],
        ("PUT", f"{log}/{3:020}.crc"),
    ]
    assert [path for _, path in made if log_is_listed(path, table)] == []
    assert [path for _, path in made if ".json%2F" in path] == []


def log_is_listed(path: str, table: Table) -> bool:
    return "max-keys=5000" in path and path.endswith(f"{table.path.name}%2F_delta_log%2F")


def test_commits_of_others_are_found_without_a_listing(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    assert both[1].run(f"INSERT INTO {table} VALUES (3, 'x')") == DONE
    for row in range(4, 8):
        assert both[0].run(f"INSERT INTO {table} VALUES ({row}, 'x')") == DONE
    assert both[0].run(f"ALTER TABLE {table} ADD COLUMNS (w INT)") == DONE
    before = len(requests(server))
    assert both[1].run(f"INSERT INTO {table} VALUES (8, 'x', 1)") == DONE
    assert [path for _, path in requests(server)[before:] if log_is_listed(path, table)] == []
    rows = [(1, "a", None), (2, "b", None), *((row, "x", None) for row in range(3, 8)), (8, "x", 1)]
    assert rows_of(table) == tuple(rows)


def test_a_log_that_was_replaced_is_listed(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    """A new table with commits of the same sizes lies at the same path."""
    assert both[1].run(f"REFRESH TABLE {table}") == DONE
    other = server.table(f"{table.path.name}-other")
    properties = "'interlock.policy' = 'row_level', 'delta.enableDeletionVectors' = 'true'"
    create = f"CREATE TABLE {other} (id INT, v STRING) USING delta TBLPROPERTIES ({properties})"
    assert both[0].run(create) == DONE
    assert both[0].run(f"INSERT INTO {other} VALUES (7, 'y'), (8, 'z')") == DONE
    put_back(table, other.path)
    before = len(requests(server))
    assert both[1].run(f"INSERT INTO {table} VALUES (9, 'n')") == DONE
    assert any(log_is_listed(path, table) for _, path in requests(server)[before:])
    assert rows_of(table) == ((7, "y"), (8, "z"), (9, "n"))


@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [
        (
            "INSERT INTO {t} VALUES (3, 'c')",
            "INSERT INTO {t} VALUES (4, 'd')",
            ((1, "a"), (2, "b"), (3, "c"), (4, "d")),
        ),
        (
            "UPDATE {t} SET v = 'A' WHERE id = 1",
            "UPDATE {t} SET v = 'B' WHERE id = 2",
            ((1, "A"), (2, "B")),
        ),
    ],
    ids=["appends", "rows"],
)
def test_two_processes_that_may_both_commit_do(
    both: list[DriverProcess],
    table: Table,
    first: str,
    second: str,
    rows: tuple[tuple[object, ...], ...],
) -> None:
    won, later = race(both, table, first, second)
    assert (won, later) == (DONE, DONE)
    assert rows_of(table) == rows
    assert latest_version(table) == 3


def test_of_two_updates_of_a_row_the_later_one_fails(
    both: list[DriverProcess], table: Table
) -> None:
    update = "UPDATE {t} SET v = 'A' WHERE id = 1"
    won, later = race(both, table, update, update)
    assert won == DONE
    assert (later.error, later.winner_version) == ("ConcurrentDeleteReadError", 2)
    assert rows_of(table) == ((1, "A"), (2, "b"))
    (record,) = table.path.glob("_delta_log/_interlock/conflicts-*.jsonl")
    assert record.stat().st_size > 0


def keep_others_out(driver: DriverProcess, *tables: Table) -> None:
    for table in tables:
        exclusive = f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.exclusive' = 'true')"
        assert driver.run(exclusive) == DONE


def test_a_block_over_two_tables(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    """Its decision is one conditional request; the other process finds all of it, or nothing."""
    first, second = both
    other = make_table(first, server.table("a-block-over-two-tables-other"))
    keep_others_out(first, table, other)
    update = "UPDATE {} SET v = '{}' WHERE id = 1"

    def begin(v: str) -> None:
        block = ("BEGIN TRANSACTION", update.format(table, v), update.format(other, v))
        assert [first.run(statement) for statement in block] == [DONE] * 3

    begin("x")
    assert second.run(f"INSERT INTO {other} VALUES (3, 'c')") == DONE
    assert first.run("COMMIT") == DONE
    assert rows_of(table) == ((1, "x"), (2, "b"))
    assert rows_of(other) == ((1, "x"), (2, "b"), (3, "c"))
    begin("y")
    assert second.run(update.format(other, "z")) == DONE
    assert first.run("COMMIT").error == "ConcurrentDeleteReadError"
    assert rows_of(table) == ((1, "x"), (2, "b"))
    assert rows_of(other) == ((1, "z"), (2, "b"), (3, "c"))
    assert first.run(update.format(table, "last")) == DONE


@pytest.mark.parametrize("lost", ["reply", "request"])
def test_the_decision_of_a_block_is_cut(
    server: s3.Server, both: list[DriverProcess], proxy: Proxy, table: Table, lost: str
) -> None:
    """It is sent again, and read where the server has it; the block is once in both tables."""
    first, second = both
    other = make_table(first, server.table(f"decision-whose-{lost}-is-lost-other"))
    keep_others_out(first, table, other)
    update = "UPDATE {} SET v = '{}' WHERE id = 1"
    for code in ("BEGIN TRANSACTION", update.format(table, "x"), update.format(other, "x")):
        assert first.run(code) == DONE
    before = len(requests(server))
    # The body of the decision, and of no other request.
    (proxy.lose_reply if lost == "reply" else proxy.lose_request)(b"committed")
    assert first.run("COMMIT") == DONE
    assert proxy.has_cut.is_set()
    of_decision = re.compile(r"/_interlock/blocks/[^/]+$")
    made = [method for method, path in requests(server)[before:] if of_decision.search(path)]
    asked = ["HEAD", "GET"] if lost == "reply" else []
    assert made == ["HEAD", "PUT", "PUT", *asked, "HEAD", "DELETE"]
    for changed in (table, other):
        assert rows_of(changed) == ((1, "x"), (2, "b"))
        assert latest_version(changed) == 4
        assert unknown_files(changed) == []
        assert second.run(update.format(changed, "y")) == DONE
        assert rows_of(changed) == ((1, "y"), (2, "b"))


def test_a_process_is_killed_amid_a_block(
    server: s3.Server, both: list[DriverProcess], table: Table, tmp_path: Path
) -> None:
    """Before the decision nothing of the block stays; after it the next writers complete it."""
    first, _ = both
    other = make_table(first, server.table("killed-amid-a-block-other"))
    keep_others_out(first, table, other)
    update, kept = "UPDATE {} SET v = '{}' WHERE id = 1", "a"
    for n, phase in enumerate(("ratifying", "ratified")):
        with driver_processes(tmp_path, "interlock", settings=server.settings()) as (victim,):
            die_at(victim, phase, 1)
            block = ("BEGIN TRANSACTION", update.format(table, phase), update.format(other, phase))
            assert [victim.run(statement) for statement in block] == [DONE] * 3
            assert victim.run("COMMIT").error is not None
        kept = phase if phase == "ratified" else kept
        new = [(3 + number, "c") for number in range(n + 1)]
        for changed in (table, other):
            start = time.monotonic()
            assert first.run(f"INSERT INTO {changed} VALUES ({3 + n}, 'c')") == DONE
            assert time.monotonic() - start < PATIENCE_SECONDS
            assert rows_of(changed) == ((1, kept), (2, "b"), *new)


def test_a_commit_that_has_missed_versions_does_not_ask_for_each(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    both[1].hold(f"INSERT INTO {table} VALUES (9, 'z')")
    for row in range(3, 9):
        assert both[0].run(f"INSERT INTO {table} VALUES ({row}, 'x')") == DONE
    before = len(requests(server))
    assert both[1].open() == DONE
    made = [(method, path[-10:]) for method, path in requests(server)[before:]]
    versions = [path for method, path in made if method == "PUT" and path.endswith(".json")]
    assert versions == ["00002.json", "00008.json"]
    own = made.index(("PUT", versions[0])) + 1
    assert made[own : own + 13] == [
        *[("HEAD", "00002.json"), ("GET", "00002.json"), ("GET", "00002.json")],  # not its own
        *[(how, f"0000{missed}.json") for missed in range(3, 8) for how in ("HEAD", "GET")],
    ]
    again = made.index(("PUT", versions[1]))
    reads = [path for how, path in made[own + 13 : again] if how == "GET" and "0000" in path]
    assert reads == ["000007.crc", "00007.json"]  # to derive the checksum from one that is proved
    assert [row[0] for row in rows_of(table)] == list(range(1, 10))


def test_others_wait_for_a_commit_that_was_overtaken_many_times(
    server: s3.Server, both: list[DriverProcess], proxy: Proxy, table: Table
) -> None:
    others: list[Future[Answer]] = []
    seen: list[int] = []

    def looks() -> int:
        return sum("claims%2F" in path for _, path in server.requests())

    def overtake() -> None:
        """Let the other process make the version first, as long as it may."""
        if (others and not others[-1].done()) or len(others) > 21:
            return
        holds = list(table.path.glob("_delta_log/_interlock/claims/[!.]*"))
        others.append(pool.submit(both[0].run, f"INSERT INTO {table} VALUES ({len(others)}, 'o')"))
        if holds:
            before = looks()
            eventually(lambda: looks() > before + 10, 60, "the other commit waits")
            seen.append(latest_version(table))
        else:
            others[-1].result()

    with ThreadPoolExecutor(1) as pool, proxy.before_each(STAMP, overtake):
        assert both[1].run(f"INSERT INTO {table} VALUES (99, 'c')") == DONE
        assert not list(table.path.glob("_delta_log/_interlock/claims/[!.]*"))
        assert [other.result() for other in others] == [DONE] * 21
    assert seen == [21]
    assert latest_version(table) == 23
    made = f"/{s3.BUCKET}/{table.path.name}/_delta_log/{22:020}.json"
    assert requests(server).count(("PUT", made)) == 1, "who has waited knows the version"
    assert rows_of(table) == tuple(
        sorted([(1, "a"), (2, "b"), *((n, "o") for n in range(21)), (99, "c")])
    )
    assert not list(table.path.glob("_delta_log/_interlock/claims/[!.]*"))


def test_a_note_is_renewed_without_a_listing(
    server: s3.Server, both: list[DriverProcess], table: Table
) -> None:
    def of_note() -> list[str]:
        """What was done with the note since it was made, by either process."""
        return [method for method, path in server.requests()[before:] if "claims/" in path]

    claimed = both[0].run(f"spark.sql(\"CALL interlock.claim('{table}', minutes => 5)\").collect()")
    assert claimed == DONE
    before = len(server.requests())
    eventually(lambda: len(of_note()) >= 6, 60, "the note is renewed three times")
    assert of_note()[:6] == ["HEAD", "PUT"] * 3 or of_note()[:6] == ["PUT", "HEAD"] * 3
    log = f"prefix={table.path.name}%2F_delta_log%2F"
    assert [path for _, path in server.requests()[before:] if path.endswith(log)] == []


def test_a_commit_whose_reply_is_lost_is_made_once(
    both: list[DriverProcess], proxy: Proxy, table: Table
) -> None:
    made: list[int] = []
    proxy.lose_reply(STAMP, then=lambda: made.append(latest_version(table)))
    assert both[0].run(f"INSERT INTO {table} VALUES (3, 'c')") == DONE
    assert proxy.has_cut.is_set()
    assert made == [2]
    assert rows_of(table) == ((1, "a"), (2, "b"), (3, "c"))
    assert latest_version(table) == 2


def test_a_commit_whose_request_is_lost_is_sent_again(
    both: list[DriverProcess], proxy: Proxy, table: Table
) -> None:
    proxy.lose_request(STAMP)
    assert both[0].run(f"INSERT INTO {table} VALUES (3, 'c')") == DONE
    assert proxy.has_cut.is_set()
    assert rows_of(table) == ((1, "a"), (2, "b"), (3, "c"))


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("409 Conflict", "ConditionalRequestConflict"),
        ("500 Internal Server Error", "InternalError"),
        ("503 Slow Down", "SlowDown"),
    ],
)
def test_a_commit_to_which_the_server_answers_with_an_error_is_sent_again(
    both: list[DriverProcess], proxy: Proxy, table: Table, status: str, code: str
) -> None:
    error = f"<Error><Code>{code}</Code><Message>not now</Message></Error>"
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    proxy.answer(f"{head}Content-Length: {len(error)}\r\n\r\n{error}".encode(), STAMP)
    assert both[0].run(f"INSERT INTO {table} VALUES (3, 'c')") == DONE
    assert proxy.has_cut.is_set()
    assert rows_of(table) == ((1, "a"), (2, "b"), (3, "c"))


@pytest.mark.parametrize("has_arrived", [True, False], ids=["arrived", "lost"])
def test_a_commit_to_which_the_server_stays_silent_is_made_once(
    both: list[DriverProcess], proxy: Proxy, impatient_table: Table, has_arrived: bool
) -> None:
    """S3A waits for an answer until its own timeout, and sends the request again."""
    with proxy.silent(STAMP, times=1, has_arrived=has_arrived):
        assert both[0].run(f"INSERT INTO {impatient_table} VALUES (3, 'c')") == DONE
        assert [pair.has_replied.is_set() for pair in proxy.unanswered] == [has_arrived]
    assert rows_of(impatient_table) == ((1, "a"), (2, "b"), (3, "c"))
    assert latest_version(impatient_table) == 2


def test_a_commit_that_never_gets_an_answer_is_of_unknown_outcome(
    both: list[DriverProcess], proxy: Proxy, impatient_table: Table
) -> None:
    """The request may still arrive after the statement has failed, so its files are kept."""
    with proxy.silent(STAMP, times=10**6, has_arrived=False):
        failed = both[0].run(f"INSERT INTO {impatient_table} VALUES (3, 'c')")
        assert failed.error == "CommitStateUnknown"
        assert len(proxy.unanswered) == 8, "four tries, in each of which S3A sends it twice"
        assert latest_version(impatient_table) == 1
        proxy.unanswered[-1].arrive()
    assert rows_of(impatient_table) == ((1, "a"), (2, "b"), (3, "c"))
    assert both[0].run(f"INSERT INTO {impatient_table} VALUES (4, 'd')") == DONE
    assert rows_of(impatient_table) == ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
    assert latest_version(impatient_table) == 3


def test_a_statement_that_is_interrupted_before_its_commit_leaves_no_files(
    both: list[DriverProcess], proxy: Proxy, table: Table
) -> None:
    """S3A sets the interrupt again, so later requests must not fail because of it."""
    looks_for_claims = f"HEAD /{s3.BUCKET}/{table.path.name}/_delta_log/_interlock/claims"
    failed = interrupted_at(looks_for_claims.encode(), both[0], proxy, table)
    assert "AbortedException" in failed.message
    assert unknown_files(table) == []
    assert rows_of(table) == ((1, "a"), (2, "b"))
    assert latest_version(table) == 1


def test_a_statement_that_is_interrupted_while_it_commits_keeps_its_files(
    both: list[DriverProcess], proxy: Proxy, table: Table
) -> None:
    failed = interrupted_at(STAMP, both[0], proxy, table)
    assert "InterruptedException" in failed.message
    assert rows_of(table) == ((1, "x"), (2, "b"))
    assert latest_version(table) == 2


def interrupted_at(request: bytes, driver: DriverProcess, proxy: Proxy, table: Table) -> Answer:
    """Interrupt an UPDATE that has written its files, before the server has the request."""
    driver.hold(f"UPDATE {table} SET v = 'x' WHERE id = 1")
    assert unknown_files(table)
    interrupted = threading.Event()

    def interrupt() -> None:
        if not interrupted.is_set():
            driver.interrupt()
            interrupted.set()

    with proxy.before_each(request, interrupt):
        driver.let_go()
        assert interrupted.wait(60)
        return driver.end()


@pytest.mark.parametrize(
    ("coordinator", "bucket", "size"),
    [
        ("filesystem", s3.BUCKET, SIZE),
        ("filesystem", s3.IN_PARTS, 6_000_000),
        (NAME, s3.BUCKET, SIZE),
    ],
    ids=["filesystem", "in parts", "postgres"],
)
def test_a_commit_that_is_staged_in_a_file(
    server: s3.Server, both: list[DriverProcess], coordinator: str, bucket: str, size: int
) -> None:
    """Commits alone, after it has lost its version to another, and before one that loses to it."""
    table = make_table(both[0], server.table(f"large-{coordinator}", bucket))
    bind(both[0], table, coordinator)
    before = len(requests(server))
    assert both[1].run(large_append(table.location, 3, size)) == DONE
    small = "INSERT INTO {t} VALUES (%d, 's')"
    assert race(both, table, small % 4, large_append(table.location, 5, size)) == (DONE, DONE)
    assert race(both, table, large_append(table.location, 6, size), small % 7) == (DONE, DONE)
    new = ((3, "large"), (4, "s"), (5, "large"), (6, "large"), (7, "s"))
    assert rows_of(table) == ((1, "a"), (2, "b"), *new)
    sizes = {version: commit_file(table, version).stat().st_size for version in range(3, 8)}
    assert [version for version in sizes if sizes[version] > size] == [3, 5, 6]
    assert list(table.path.glob("_delta_log/.*")) == []

    made = requests(server)[before:]
    if bucket == s3.BUCKET:
        of_first = [method for method, path in made if f".{3:020}." in path]
        assert of_first[:7] == ["HEAD", "GET", "PUT", "HEAD", "GET", "HEAD", "DELETE"]
    staged = re.compile(r"_delta_log/\.0*(\d+)\.[^/]+\.(?:tmp|staged)(\?\w+|$)")
    found = [(method, staged.search(path)) for method, path in made]
    steps = [(method, at[1], at[2]) for method, at in found if at and method not in ("HEAD", "GET")]
    in_parts = [("POST", "?uploads"), *[("PUT", "?partNumber")] * 2, ("POST", "?uploadId")]
    write = in_parts if bucket == s3.IN_PARTS else [("PUT", "")]
    assert steps == [
        (method, version, end) for version in "3456" for method, end in (*write, ("DELETE", ""))
    ]


def bind(driver: DriverProcess, table: Table, coordinator: str) -> None:
    properties = f"'interlock.coordinator' = '{coordinator}'"
    assert driver.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})") == DONE


@pytest.mark.parametrize(("coordinator", "heads"), [("filesystem", 14), (NAME, 13)])
def test_requests_of_a_whole_insert(
    server: s3.Server, both: list[DriverProcess], table: Table, coordinator: str, heads: int
) -> None:
    bind(both[0], table, coordinator)
    assert both[0].run(f"INSERT INTO {table} VALUES (3, 'x')") == DONE
    before = len(requests(server))
    assert both[0].run(f"INSERT INTO {table} VALUES (4, 'x')") == DONE
    # Claims of other tables may be renewed meanwhile.
    made = [(how, path) for how, path in requests(server)[before:] if table.path.name in path]
    assert Counter(method for method, _ in made) == {"HEAD": heads, "GET": 3, "PUT": 3}

    data, *log = (path for method, path in made if method == "PUT")
    assert data.endswith(".parquet")
    names = [f"{4:020}.json", f"{4:020}.crc"]
    assert log == [f"/{s3.BUCKET}/{table.path.name}/_delta_log/{name}" for name in names]
    assert [method for method, path in made if Path(data).name in path] == [
        *("HEAD", "GET"),  # Spark's writer: no such file, no such folder
        "PUT",
        *("HEAD", "HEAD"),  # how large it is, for Spark and for Delta
    ]
    listed = [path.partition("&prefix=")[2] for method, path in made if method == "GET"]
    claims = f"{table.path.name}%2F_delta_log%2F_interlock%2Fclaims%2F"
    assert listed == [f"{table.path.name}%2F{Path(data).name}%2F", claims, claims]


@pytest.mark.parametrize("coordinator", ["filesystem", NAME])
def test_a_commit_that_a_stock_writer_has_replaced_is_noticed(
    both: list[DriverProcess], table: Table, coordinator: str
) -> None:
    bind(both[0], table, coordinator)
    assert both[0].run(f"INSERT INTO {table} VALUES (3, 'c')") == DONE
    last = latest_version(table)
    stock = f"""spark.conf
jvm, conf = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
def at(version):
    name = f"{table.location}/_delta_log/{{version:020}}.json"
    return jvm.org.apache.hadoop.fs.Path(name)
fs = at(0).getFileSystem(conf)
jvm.org.apache.hadoop.fs.FileUtil.copy(fs, at({last - 1}), fs, at({last}), False, True, conf)
"""
    assert both[0].run(stock) == DONE
    refused = both[0].run(f"INSERT INTO {table} VALUES (4, 'd')")
    assert "[INTERLOCK_COMMIT_OVERWRITTEN]" in refused.message
    assert latest_version(table) == last


def test_without_conditional_create_a_policy_is_refused(
    server: s3.Server, both: list[DriverProcess]
) -> None:
    refused = both[0].run(
        f"CREATE TABLE delta.`s3a://{s3.UNCONDITIONAL}/t` (id INT) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    assert "[INTERLOCK_NO_PUT_IF_ABSENT]" in refused.message
    assert "S3AFileSystem has no fs.option.create.conditional.overwrite" in refused.message
    assert "fs.s3a.create.conditional.enabled" in refused.message
    assert not list(Path(server.folder, "data", s3.UNCONDITIONAL).rglob("*.json"))


def test_a_client_that_cannot_race_says_nothing_of_the_bucket(
    server: s3.Server, both: list[DriverProcess]
) -> None:
    looked = f"""spark.conf
from interlock._diagnosis import store
told = store(spark, "s3a://{s3.UNCONDITIONAL}/tables")
assert not told.ok and "has no fs.option.create.conditional.overwrite" in told.found, told
"""
    assert both[0].run(looked) == DONE
    assert not Path(server.folder, "data", s3.UNCONDITIONAL, "_interlock_store.properties").exists()


@pytest.mark.parametrize("bucket", [s3.BUCKET, s3.UNCONDITIONAL])
def test_a_repair(
    server: s3.Server, postgres: Database, both: list[DriverProcess], bucket: str
) -> None:
    """A repair works in a bucket with conditional requests and in one without."""
    table = server.table("repaired", bucket)
    bound = f"'interlock.policy' = 'row_level', 'interlock.coordinator' = '{NAME}'"
    create = f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({bound})"
    assert both[0].run(create) == DONE
    assert both[0].run(insert(table, 1)) == DONE
    dump = postgres.dump()
    for row in (2, 3):
        assert both[0].run(insert(table, row)) == DONE
    postgres.server.restore(dump)
    assert "[INTERLOCK_COORDINATOR_RESTORED]" in both[1].run(insert(table, 4)).message
    assert repaired(server, postgres, table) == {
        "head": 3,
        "epoch": 1,
        "newEpoch": True,
        "adopted": 2,
    }
    assert both[1].run(insert(table, 5)) == DONE
    assert both[0].run(insert(table, 6)) == DONE
    assert rows_of(table) == ((1,), (2,), (3,), (5,), (6,))
    assert latest_version(table) == 5

    made = commit_file(table, 5).read_bytes()
    commit_file(table, 5).unlink()
    with postgres.server.superuser() as connection:
        mark = "UPDATE interlock.tables SET published = 4 WHERE log_path = %s"
        connection.execute(mark, (f"{table.location}/_delta_log",))
    assert repaired(server, postgres, table) == {"head": 5, "epoch": 1, "published": 1}
    assert commit_file(table, 5).read_bytes() == made
    assert both[1].run(insert(table, 7)) == DONE
    assert rows_of(table) == ((1,), (2,), (3,), (5,), (6,), (7,))
    assert latest_version(table) == 6


def insert(table: Table, row: int) -> str:
    return f"INSERT INTO {table} VALUES ({row})"


def repaired(server: s3.Server, postgres: Database, table: Table) -> dict[str, object]:
    """Repair a table, and return what was done."""
    done = command.repair(postgres.admin(), table.location, server.settings())
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("table") == table.location
    return {key: value for key, value in said.items() if value}


def race(both: list[DriverProcess], table: Table, first: str, second: str) -> tuple[Answer, Answer]:
    """Let two processes read the same version, and commit in this order."""
    both[0].hold(first.format(t=table))
    both[1].hold(second.format(t=table))
    return both[0].open(), both[1].open()
