"""A real HDFS on 127.0.0.1: one NameNode and two DataNodes, each a process.

    with start(folder) as cluster:
        spark.sql(f"CREATE TABLE delta.`{cluster.url}/t` ...")
        cluster.kill_datanode()

The servers are those of Hadoop's own minicluster jar, which is fetched once, on Spark's jars.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.kit.eventually import eventually
from tests.kit.java import JARS, fetched, hadoop_version, java
from tests.kit.ports import free_ports

_SERVERS = "org.apache.hadoop.hdfs.server"
_PATIENCE_SECONDS = 120
_DATANODES = 2
_METRICS_SECONDS = 1


@dataclass
class Cluster:
    """Its servers, which keep their data and their ports in `folder`."""

    folder: Path
    ports: tuple[int, ...]
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self.ports[0]}"

    def start_namenode(self) -> None:
        self._start("namenode", "namenode.NameNode")

    def kill_namenode(self) -> None:
        self._kill("namenode")

    @contextmanager
    def silent_namenode(self) -> Iterator[None]:
        """Have the NameNode answer nothing for a while."""
        namenode = self._processes["namenode"]
        namenode.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            namenode.send_signal(signal.SIGCONT)

    def start_datanode(self, number: int) -> None:
        name = f"datanode-{number}"
        settings = {
            "dfs.datanode.data.dir": str(self.folder / name),
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.http.address": f"127.0.0.1:{self.ports[2 + number]}",
        }
        options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        self._start(name, "datanode.DataNode", *options)

    def kill_datanode(self, number: int) -> None:
        self._kill(f"datanode-{number}")

    def await_datanodes(self, number: int = _DATANODES) -> None:
        """Wait until so many are alive and the NameNode lets clients write."""
        what = f"HDFS is ready, see the logs in {self.folder}"
        eventually(lambda: self._is_ready(number), _PATIENCE_SECONDS, what)

    def syncs(self) -> int:
        """Count what DataNodes have synced to their disks, once their metrics are up to date."""
        time.sleep(1.1 * _METRICS_SECONDS)
        return sum(
            bean.get("FsyncCount", 0)
            for number in range(_DATANODES)
            for bean in _beans(self.ports[2 + number], "DataNodeActivity*")
        )

    def stop(self) -> None:
        for name in tuple(self._processes):
            self._kill(name)

    def format(self) -> None:
        """Write the settings of all servers, and an empty file system."""
        settings = {
            "fs.defaultFS": self.url,
            "dfs.namenode.name.dir": str(self.folder / "names"),
            "dfs.namenode.http-address": f"127.0.0.1:{self.ports[1]}",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.handler.count": "4",
            "dfs.replication": str(_DATANODES),
        }
        for file in ("core-site.xml", "hdfs-site.xml"):
            (self.folder / file).write_text(_xml(settings), encoding="utf-8")
        (self.folder / "hadoop-metrics2.properties").write_text(
            f"*.period={_METRICS_SECONDS}", encoding="utf-8"
        )
        self._start("format", "namenode.NameNode", "-format")
        assert self._processes.pop("format").wait(_PATIENCE_SECONDS) == 0, self.folder

    def _start(self, name: str, server: str, *arguments: str) -> None:
        (jar,) = fetched([f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}"])
        path = os.pathsep.join((str(self.folder), str(jar), f"{JARS}/*"))
        command = [*java("-Xmx256m", "-XX:+UseSerialGC"), "-cp", path, f"{_SERVERS}.{server}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, cwd=self.folder
            )

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def _is_ready(self, datanodes: int) -> bool:
        assert all(p.poll() is None for p in self._processes.values()), self.folder
        state: Mapping[str, Any] = next(iter(_beans(self.ports[1], "FSNamesystemState")), {})
        return (
            state.get("NumLiveDataNodes", 0) >= datanodes and state.get("FSState") == "Operational"
        )


@contextmanager
def start(folder: Path) -> Iterator[Cluster]:
    """Start a cluster with its data in `folder`, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder, free_ports(2 + _DATANODES))
    try:
        cluster.format()
        cluster.start_namenode()
        for number in range(_DATANODES):
            cluster.start_datanode(number)
        cluster.await_datanodes()
        yield cluster
    finally:
        cluster.stop()


def _beans(port: int, name: str) -> list[dict[str, Any]]:
    """Ask a server for its metrics; none while it does not answer."""
    query = f"http://127.0.0.1:{port}/jmx?qry=Hadoop:*,name={name}"
    try:
        with urllib.request.urlopen(query, timeout=10) as answer:
            beans: list[dict[str, Any]] = json.load(answer)["beans"]
    except OSError:
        return []
    return beans


def _xml(settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{key}</name><value>{escape(value)}</value></property>"
        for key, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"
