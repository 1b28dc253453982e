"""Real Sparks on the loopback interface: a Connect server, and a standalone cluster of a master and workers.

Each runs from the folder of the installed pyspark, in processes of its own that end with the `with` block.
"""

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import java

ROOT = Path(__file__).parents[2]
_PATIENCE = 300
"""Seconds in which a process has to say that it is up. It takes five, but for a machine that is busy elsewhere."""

JAVA = " ".join(java.SHORT_LIVED)
"""Options of every Java process."""
SHORT_LIVED = {"SPARK_LAUNCHER_OPTS": JAVA, "SPARK_SUBMIT_OPTS": JAVA}
"""The environment in which sessions that know nothing of tests, as those of notebooks, start Java so."""
CONF = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""Settings of every session: small, quiet, on the loopback interface."""


def missing():
    """Return what there is no Spark without, as a sentence; None where all of it is there."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'snapshot-explorer[spark]'"
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "there is no Java: install Java 17 and put it on the PATH or name it in JAVA_HOME"
    return None


def environment(**more):
    """Return the environment of Spark's processes: this interpreter, package and tests, the loopback interface."""
    home = str(Path(importlib.util.find_spec("pyspark").origin).parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYTEST_"))}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **SHORT_LIVED,
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        **more,
    }


@dataclass(frozen=True)
class Process:
    """A process of Spark, which leads a group of its own."""

    process: subprocess.Popen
    log: Path

    def says(self, pattern):
        """Wait until its log has what the pattern finds, and return the pattern's group."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            text = self.log.read_text(errors="replace")
            if found := re.search(pattern, text):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"Spark did not say {pattern!r}: {text[-3000:]}")

    def kill(self):
        """End it as the system does that runs out of memory: at once, its children included."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def _running(command, log, **env):
    """Run a command until the block ends."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(**env),
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        yield Process(process, log)
    finally:
        _ended(process)


def _ended(process):
    """End a process and its children, first asking."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _spark(name):
    return str(Path(environment()["SPARK_HOME"]) / "bin" / name)


@contextmanager
def connect_server(folder, **conf):
    """Run a Spark Connect server; gives its process and its address, sc://127.0.0.1:port."""
    with socket.socket() as free:  # PySpark 4.0 does not log which port it chose itself
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = CONF | {"spark.master": "local[2]", "spark.connect.grpc.binding.port": str(port)} | conf
    chosen = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [
        _spark("spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--name", "Spark Connect server"),
        *chosen,
    ]
    with _running(command, Path(folder) / "connect.log", SPARK_NO_DAEMONIZE="1") as server:
        server.says(r"(Spark Connect server started at)")
        yield server, f"sc://127.0.0.1:{port}"


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster that is up."""

    url: str
    master: Process
    workers: list[Process]


@contextmanager
def standalone_cluster(folder, workers=2, memory="1g", **env):
    """Run a master and workers of one core each; environment variables of the workers reach their executors."""
    folder = Path(folder)
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:

        def start(name, *command, **more):
            return stack.enter_context(_running(command, folder / f"{name}.log", SPARK_DAEMON_MEMORY="256m", **more))

        master = start("master", _spark("spark-class"), f"{deploy}.master.Master", *here)
        url = master.says(r"Starting Spark master at (spark://\S+)")
        started = []
        for name in (f"worker-{number}" for number in range(workers)):
            size = ("--cores", "1", "--memory", memory, "--work-dir", str(folder / name))
            started.append(start(name, _spark("spark-class"), f"{deploy}.worker.Worker", *here, *size, url, **env))
        for worker in started:
            worker.says(r"(Successfully registered with master)")
        yield Cluster(url, master, started)
