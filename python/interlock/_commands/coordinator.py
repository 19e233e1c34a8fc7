"""`interlock coordinator`: the database that orders the commits of tables."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from interlock import _artifacts
from interlock._commands.sessions import add_conf, bare_jvm, unlogged, user_session
from interlock._tabular import grid
from interlock.errors import UsageError

_URL = "jdbc:postgresql://HOST:PORT/DATABASE"
_ACTIONS = {
    "init": "make the schema interlock and the roles interlock_writer and interlock_admin",
    "upgrade": "bring the schema to the version of this Interlock",
    "status": "show the schema's version and the tables",
    "repair": "make the database agree with a table's log, which is right where they differ",
}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "coordinator",
        help="set up, look at and repair a commit coordinator in Postgres",
        description="Sets up, shows and repairs a commit coordinator in Postgres. Exit status 1 if "
        "it could not, or if status finds no schema or another version of it.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    for action, text in _ACTIONS.items():
        _add_options(actions.add_parser(action, help=text, description=f"{text.capitalize()}."))
    repair = actions.choices["repair"]
    repair.add_argument(
        "--table", required=True, metavar="FOLDER|URL", help="where the table is, as s3a://bucket/t"
    )
    add_conf(repair)
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True, metavar="URL", help=_URL)
    parser.add_argument("--user", required=True, help="the database login")
    password = parser.add_mutually_exclusive_group(required=True)
    password.add_argument(
        "--password-file", metavar="FILE", help="its first line; closed to other users (chmod 600)"
    )
    password.add_argument(
        "--password-variable", metavar="NAME", help="a variable of the environment"
    )
    password.add_argument(
        "--credential-provider", metavar="CLASS", help="a class that gives the password"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the action, print what it did, and return 1 if something is to be done."""
    given = {
        "url": arguments.url,
        "user": arguments.user,
        "passwordFile": arguments.password_file,
        "passwordVariable": arguments.password_variable,
        "credentialProvider": arguments.credential_provider,
        "table": getattr(arguments, "table", None),
    }
    result = _ask(arguments, {key: value for key, value in given.items() if value})
    if "condition" in result:
        print(f"interlock coordinator: {_message(result)}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print(_TEXTS[arguments.action](result))
    return 1 if arguments.action == "status" and not _is_current(result) else 0


def _ask(arguments: argparse.Namespace, options: dict[str, str]) -> dict[str, Any]:
    if arguments.action == "repair":
        text = repair_text(arguments.conf, options)
    else:
        with bare_jvm({"spark.jars.packages": _artifacts.POSTGRES_COORDINATES}) as jvm:
            admin = jvm.io.interlock.coordinator.postgres.Admin
            text = admin.run(arguments.action, options)
    result: dict[str, Any] = json.loads(text)
    return result


def repair_text(conf: Sequence[tuple[str, str]], options: dict[str, str]) -> str:
    """Repair with a session, since only that knows how files are made on the table's storage."""
    with user_session(conf, postgres=True) as spark, unlogged():
        jvm: Any = getattr(spark, "_jvm", None)
        if jvm is None:
            raise UsageError("repair does not run over Spark Connect: run it without spark.remote")
        classic: Any = spark
        maintenance = jvm.io.interlock.spark.Maintenance
        text: str = maintenance.repairCoordinator(classic._jsparkSession, options)
    return text


def _message(error: dict[str, Any]) -> str:
    """Put the error's parameters into the text that the jar has for its condition."""
    condition, parameters = error["condition"], error["parameters"]
    catalogue = _artifacts.error_conditions()
    if condition not in catalogue:
        return f"{condition}: " + ", ".join(f"{key}={value}" for key, value in parameters.items())
    text = " ".join(catalogue[condition]["message"])
    text = text.replace("coordinator <coordinator>", "coordinator")  # it has no name here
    filled = re.sub(r"<(\w+)>", lambda found: parameters.get(found[1], found[0]), text)
    return f"[{condition}] {filled}"


def _made(result: dict[str, Any]) -> str:
    """Say what `init` or `upgrade` did, and how a login becomes a writer."""
    if result["applied"]:
        done = f"Ran {', '.join(result['applied'])}."
    else:
        done = "There was nothing to do."
    return (
        f"{done} The schema has version {result['version']}.\n"
        "Let a login write:    GRANT interlock_writer TO <login>;\n"
        "Let a login repair:   GRANT interlock_admin TO <login>;"
    )


def _is_current(status: dict[str, Any]) -> bool:
    return status["version"] in (status["newest"], None)


def _status(result: dict[str, Any]) -> str:
    version, newest = result["version"], result["newest"]
    if version == 0:
        return f"{result['database']}: no schema; run `interlock coordinator init`."
    shown = "version not shown to this login" if version is None else f"version {version}"
    outdated = "" if _is_current(result) else f" of {newest}; run `interlock coordinator upgrade`"
    head = f"{result['database']}: schema {shown}{outdated}, {len(result['tables'])} tables"
    rows = [
        [str(cell) for cell in (t["path"], t["head"], _published(t), t["epoch"], t["updated"])]
        for t in result["tables"]
    ]
    titles = ["log", "head", "published", "epoch", "changed"]
    return "\n".join([head, *(["", *grid([titles, *rows])] if rows else [])])


def _published(table: dict[str, Any]) -> str:
    """Return up to which version the log is complete, or `4 or later` if it cannot be read."""
    if table["inLog"] is not None:
        return str(table["inLog"])
    return f"{table['published']}" + (" or later" if table["published"] < table["head"] else "")


def _repaired(result: dict[str, Any]) -> str:
    lines = [f"{result['table']} is at version {result['head']}, epoch {result['epoch']}."]
    if result["newEpoch"]:
        lines.append("The database contradicted the log: a new epoch begins with the log's state.")
    for key, text in (("published", "ratified commits published"), ("adopted", "commits adopted")):
        if result[key]:
            lines.append(f"{result[key]} {text}.")
    if result["swept"]:
        lines.append(f"{len(result['swept'])} orphaned files deleted: {', '.join(result['swept'])}")
    return "\n".join(lines)


_TEXTS = {"init": _made, "upgrade": _made, "status": _status, "repair": _repaired}
