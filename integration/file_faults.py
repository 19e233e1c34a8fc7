"""Faults of the file system, at the JVM's own calls: the n-th that concerns a folder fails.

Byteman, an agent of the JVM, has a rule for every method of `java.io` and `java.nio` by which
Spark, Hadoop, Delta and Interlock reach files. A method fails as it fails on a real disk: by its
exception, or by the value with which it says that nothing came of it. The rename by which Delta
makes a version may also be done, and fail: its answer was lost.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
from interlock._small_session import SMALL_SESSION

from tests.kit.driver_process import DriverProcess
from tests.kit.support import Table
from tests.kit.tree import ROOT

_BYTEMAN = ("org.jboss.byteman", "byteman", "4.0.25")
_JARS = ROOT / ".build"
_OPTIONS = "spark.driver.extraJavaOptions"

_FOLDER = "interlock.faults.folder"
_NUMBER = "interlock.faults.number"
_FAILED = "interlock.faults.failed"
_COMMITTED = "interlock.faults.committed"

_IO = 'THROW new java.io.IOException("No space left on device: " + {path})'
_DENIED = 'THROW new java.io.FileNotFoundException({path} + " (Permission denied)")'

_OPENING = "java.nio.file.Path, java.util.Set, java.nio.file.attribute.FileAttribute[]"

# Class, method, what names the file in it, and how it fails.
_CALLS = (
    ("java.nio.file.Files", "newInputStream", "$1", _IO),
    ("java.nio.file.Files", "newOutputStream", "$1", _IO),
    ("java.nio.file.Files", f"newByteChannel({_OPENING})", "$1", _IO),
    ("java.nio.file.Files", "newDirectoryStream(java.nio.file.Path)", "$1", _IO),
    ("java.nio.file.Files", "createDirectory", "$1", _IO),
    ("java.nio.file.Files", "createLink", "$1", _IO),
    ("java.nio.file.Files", "delete", "$1", _IO),
    ("java.nio.file.Files", "deleteIfExists", "$1", _IO),
    ("java.nio.file.Files", "move", "$2", _IO),
    (
        "java.nio.file.Files",
        "readAttributes(java.nio.file.Path, java.lang.Class, java.nio.file.LinkOption[])",
        "$1",
        _IO,
    ),
    ("java.nio.file.Files", "getAttribute", "$1", _IO),
    ("java.nio.channels.FileChannel", f"open({_OPENING})", "$1", _IO),
    ("sun.nio.ch.FileChannelImpl", "force", "$0.path", _IO),
    ("sun.nio.ch.FileChannelImpl", "write(java.nio.ByteBuffer)", "$0.path", _IO),
    ("java.io.FileInputStream", "<init>(java.io.File)", "$1", _DENIED),
    ("java.io.FileOutputStream", "<init>(java.io.File, boolean)", "$1", _DENIED),
    ("java.io.FileOutputStream", "write(byte[], int, int)", "$0.path", _IO),
    ("java.io.FileOutputStream", "getFD", "$0.path", _IO),  # which is asked for to sync
    ("java.io.RandomAccessFile", "<init>(java.io.File, java.lang.String)", "$1", _DENIED),
    ("java.io.File", "createNewFile", "$0", _IO),
    ("java.io.File", "delete", "$0", "RETURN false"),
    ("java.io.File", "mkdir", "$0", "RETURN false"),
    ("java.io.File", "renameTo", "$1", "RETURN false"),
    ("java.io.File", "list()", "$0", "RETURN null"),
    ("java.io.File", "listFiles()", "$0", "RETURN null"),
)

# What the caller is told of a commit that fails.
_TOLD = (
    "java.io.IOException",
    "java.io.InterruptedIOException",
    "java.lang.IllegalStateException",
    "org.apache.hadoop.fs.FileAlreadyExistsException",  # of a second try
)
_AT = ("ENTRY", "EXIT")
_HADOOP = "org.apache.hadoop.fs.FileContext"


def settings(folder: Path) -> dict[str, str]:
    """Return what a session needs so that `arm` works in it.

    Args:
        folder: where the rules are written

    """
    rules = folder / "faults.btm"
    texts = [*map(_rule, range(len(_CALLS))), *_rules_of_commits()]
    rules.write_text("\n".join(texts), encoding="utf-8")
    jar = _byteman()
    agent = f"-javaagent:{jar}=boot:{jar},script:{rules}"
    return {_OPTIONS: f"{SMALL_SESSION[_OPTIONS]} {agent} -Dorg.jboss.byteman.transform.all"}


def arm(session: DriverProcess, table: Table, number: int) -> None:
    """Let one of the next calls fail that concern a table, counted from 1."""
    _set(session, _NUMBER, str(number))
    _set(session, _FOLDER, str(table.path))


def fail_commit(session: DriverProcess, file: Path, told: str, *, done: bool) -> None:
    """Let the call that makes a version's file fail, by one of `_TOLD`, be it done or not."""
    _set(session, _COMMITTED, f"{told} {_AT[done]} {file}")


def disarm(session: DriverProcess, table: Table) -> str | None:
    """Let no call fail any more, and tell which one has."""
    _set(session, _FOLDER, "")
    _set(session, _COMMITTED, "")
    told = table.path.with_name("failed-call")
    read = f"spark._jvm.System.getProperty({_FAILED!r}, '')"
    end = session.run(f"spark.version; open({str(told)!r}, 'w').write({read})")
    assert end.error is None
    _set(session, _FAILED, "")
    return told.read_text(encoding="utf-8").replace(str(table.path), "") or None


def _set(session: DriverProcess, key: str, value: str) -> None:
    assert session.run(f"spark._jvm.System.setProperty({key!r}, {value!r})").error is None


def _rule(index: int) -> str:
    kind, method, path, failure = _CALLS[index]
    name = f"String.valueOf({path})"
    return f"""\
RULE fault {index}
CLASS {kind}
METHOD {method}
AT ENTRY
BIND folder : String = System.getProperty("{_FOLDER}", "")
IF !folder.isEmpty() && {name}.startsWith(folder)
   && incrementCounter(folder + System.getProperty("{_NUMBER}"))
      == Integer.getInteger("{_NUMBER}").intValue()
DO System.setProperty("{_FAILED}", "{kind}.{method.split("(")[0]} " + {name}),
   {failure.format(path=name)}
ENDRULE
"""


def _rules_of_commits() -> Iterator[str]:
    """Delta's own, and that of Interlock's queue."""
    for told in _TOLD:
        for at in _AT:
            yield _rule_of_commit(_HADOOP, "rename", "$2.toUri().getPath()", told, at)
    yield _rule_of_commit("java.nio.file.Files", "createLink", "$1", _TOLD[0], _AT[False])


def _rule_of_commit(kind: str, method: str, path: str, told: str, at: str) -> str:
    return f"""\
RULE {kind} {told} {at}
CLASS {kind}
METHOD {method}
AT {at}
IF ("{told} {at} " + {path}).equals(System.getProperty("{_COMMITTED}"))
DO THROW new {told}("the storage fails")
ENDRULE
"""


def _byteman() -> Path:
    """Fetch it as the build fetches its parts: by the Ivy that PySpark carries."""
    group, name, version = _BYTEMAN
    jar = _JARS / f"{name}-{version}.jar"
    if not jar.exists():
        (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
        pattern = f"{_JARS}/[artifact]-[revision].[ext]"
        command = ["java", "-jar", str(ivy), "-dependency", group, name, version]
        subprocess.run(
            [*command, "-confs", "default", "-warn", "-retrieve", pattern],
            check=True,
            capture_output=True,
        )
    return jar
