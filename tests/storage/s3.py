"""A real S3 server on 127.0.0.1 for tests, S3Proxy on a local folder, and S3A for Spark.

    with start(folder) as server:
        spark = ... .config(map=server.settings()) ...
        table = server.table("t")
        spark.sql(f"CREATE TABLE {table} ...")
        table.path  # a folder of this machine, in which the server keeps the table's objects

S3Proxy makes the object of a conditional PUT by a hard link, so of several at once one succeeds.
S3A runs with the modules of the AWS SDK that it needs, without the SDK's bundle of 600 MB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.java import fetched, hadoop_version, java
from tests.kit.ports import HOST, free_port, running
from tests.storage.remote import SeenTable, Storage

BUCKET = "bucket"
UNCONDITIONAL = "unconditional"
"""A bucket for which S3A is told that its server knows no conditions."""

IMPATIENT = "impatient"
"""A bucket for which S3A gives a request up that has no answer after two seconds, and sends it at
most twice. It does so in a process that has run `ALLOW_IMPATIENCE` first.
"""

IN_PARTS = "in-parts"
"""A bucket to which S3A sends what is above 5 MiB, the least that it permits, in parts."""

ALLOW_IMPATIENCE = """spark.conf
jvm = spark._jvm
loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
config = loader.loadClass("org.apache.hadoop.fs.s3a.impl.AWSClientConfig")
least = config.getDeclaredField("minimumOperationDuration")
least.setAccessible(True)
least.set(None, jvm.java.time.Duration.ofSeconds(1))
"""
"""S3A raises shorter timeouts to 15 seconds. Its method to change this is not found by Py4J, as the
class has others whose types are in modules that the tests do without.
"""

DELTALAKE_ENDPOINT = "spark.tests.deltalake.endpoint"
"""A setting of sessions in whose process `deltalake` writes to the server as well."""

KEY, SECRET = "key-of-tests", "secret-of-tests"


def _sdk(version: str, *newer: str) -> list[str]:
    """Return the modules of the AWS SDK that S3A and S3Proxy need; the newer ones by name."""
    modules = (
        "annotations",
        "apache-client",
        "arns",
        "auth",
        "aws-core",
        "aws-query-protocol",
        "aws-xml-protocol",
        "checksums",
        "checksums-spi",
        "crt-core",
        "endpoints-spi",
        "http-auth",
        "http-auth-aws",
        "http-auth-aws-eventstream",
        "http-auth-spi",
        "http-client-spi",
        "identity-spi",
        "json-utils",
        "metrics-spi",
        "profiles",
        "protocol-core",
        "regions",
        "s3",
        "s3-transfer-manager",
        "sdk-core",
        "third-party-jackson-core",
        "utils",
    )
    return [f"software.amazon.awssdk:{module}:{version}" for module in (*modules, *newer)]


_NEWEST_SDK = _sdk("2.35.4", "retries", "retries-spi", "utils-lite")
# With what each Hadoop was built.
_SDK_OF_HADOOP = {
    "3.4.1": _sdk("2.24.6"),
    "3.4.2": _sdk("2.29.52", "retries", "retries-spi"),
    "3.5.0": [
        *_NEWEST_SDK,
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ],
}
_S3A = [
    *_SDK_OF_HADOOP[hadoop_version()],
    "commons-logging:commons-logging:1.2",
    f"org.apache.hadoop:hadoop-aws:{hadoop_version()}",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "org.reactivestreams:reactive-streams:1.0.4",
    "software.amazon.eventstream:eventstream:1.0.1",
]
# S3Proxy 4.0.0 leaves objects out of a listing while another is made.
_SERVER = [
    *_NEWEST_SDK,
    "args4j:args4j:2.37",
    "ch.qos.logback:logback-classic:1.6.3",
    "ch.qos.logback:logback-core:1.6.3",
    "com.fasterxml.jackson.core:jackson-annotations:2.22",
    "com.fasterxml.woodstox:woodstox-core:7.2.1",
    "com.google.guava:guava:33.7.1-jre",
    "jakarta.servlet:jakarta.servlet-api:6.0.0",
    "org.codehaus.woodstox:stax2-api:4.3.0",
    "org.gaul:s3proxy:4.1.0",
    "org.slf4j:slf4j-api:2.0.18",
    "tools.jackson.core:jackson-core:3.2.2",
    "tools.jackson.core:jackson-databind:3.2.2",
    "tools.jackson.dataformat:jackson-dataformat-xml:3.2.2",
]

_REQUEST = re.compile(r"\{([A-Z]+)@\w+ http://[^/]+(\S+) HTTP/")

# The server's handler logs each request.
_LOGGING = """
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%msg%n</pattern></encoder>
  </appender>
  <logger name="org.gaul.s3proxy.S3ProxyHandler" level="DEBUG"/>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass(frozen=True)
class Server:
    """A running server; `folder` has the bucket's objects as files."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """The bucket, as Spark names it."""
        return f"s3a://{BUCKET}"

    @property
    def bucket(self) -> Path:
        return self.folder / "data" / BUCKET

    def table(self, name: str, bucket: str = BUCKET) -> SeenTable:
        folder = self.folder / "data" / bucket
        return SeenTable(folder / name, folder, f"s3a://{bucket}")

    def storage(self, *, port: int = 0) -> Storage:
        """Return the bucket, reached through a port that is not the server's if one is given."""
        return Storage(self.url, self.settings(port=port))

    def requests(self) -> list[tuple[str, str]]:
        """The method and the address, from the bucket on, of each request until now."""
        return _REQUEST.findall((self.folder / "server.log").read_text(encoding="utf-8"))

    def settings(self, *, port: int = 0) -> dict[str, str]:
        """Spark's settings for S3A.

        Args:
            port: of a proxy in front of the server

        """
        return settings(port or self.port)


def settings(port: int) -> dict[str, str]:
    """Spark's settings for S3A and a server at a port."""
    s3a = {
        "endpoint": f"http://{HOST}:{port}",
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": KEY,
        "secret.key": SECRET,
        f"bucket.{UNCONDITIONAL}.create.conditional.enabled": "false",
        f"bucket.{IMPATIENT}.connection.request.timeout": "2s",
        f"bucket.{IMPATIENT}.retry.limit": "1",
        f"bucket.{IN_PARTS}.multipart.size": "5M",
    }
    jars = ",".join(str(jar) for jar in fetched(_S3A))
    return {
        "spark.jars": jars,
        **{f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()},
    }


def deltalake_options(endpoint: str) -> dict[str, str]:
    """Return what `deltalake` needs to reach a server; it commits by conditional requests."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_CONDITIONAL_PUT": "etag",
    }


@contextmanager
def start(folder: Path) -> Iterator[Server]:
    """Start a server with an empty bucket in `folder`, and end it."""
    server = Server(folder, free_port())
    for bucket in (BUCKET, UNCONDITIONAL, IMPATIENT, IN_PARTS):
        (folder / "data" / bucket).mkdir(parents=True)
    properties = {
        "s3proxy.endpoint": f"http://{HOST}:{server.port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": "none",
        "jclouds.credential": "none",
        "jclouds.filesystem.basedir": str(folder / "data"),
    }
    file, logging = folder / "s3proxy.conf", folder / "logback.xml"
    logging.write_text(_LOGGING, encoding="utf-8")
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    classpath = os.pathsep.join(str(jar) for jar in fetched(_SERVER))
    command = java("-Xmx256m", "-XX:TieredStopAtLevel=1")
    logs = f"-Dlogback.configurationFile={logging}"
    main = ["org.gaul.s3proxy.Main", "--properties", str(file)]
    server_log = folder / "server.log"
    with running([*command, logs, "-cp", classpath, *main], server.port, server_log):
        yield server
