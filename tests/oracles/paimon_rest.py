"""Run the REST catalog of Paimon's own tests over a folder, until standard input ends.

    python -m tests.oracles.paimon_rest FOLDER WAREHOUSE TOKEN

Runs in the environment of .ci/oracles. Prints the catalog's URI.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jpype
import pyspark

from tests.support import java

FOLDERS = ("paimon-1.4", "paimon-rest")
JARS = ("hadoop-client", "slf4j-api", "commons-logging", "log4j")
"""Of those that PySpark brings."""


def main() -> None:
    """Start the server of Paimon's tests and wait."""
    folder, warehouse, token = sys.argv[1:]
    of_spark = Path(pyspark.__file__).parent.joinpath("jars")
    of_paimon = Path(sys.executable).parent.parent.joinpath("jars")
    jars = [*(jar for name in FOLDERS for jar in of_paimon.joinpath(name).glob("*.jar"))]
    jars += [jar for name in JARS for jar in of_spark.glob(f"{name}*.jar")]
    jpype.startJVM(*java.SHORT_LIVED, "-Xmx256m", classpath=[str(jar) for jar in jars])
    rest = jpype.JPackage("org").apache.paimon.rest
    properties = jpype.JClass("java.util.HashMap")
    config = rest.responses.ConfigResponse(properties({"prefix": "of-a-test"}), properties())
    server = rest.RESTCatalogServer(folder, rest.auth.BearTokenAuthProvider(token), config, warehouse)
    server.start()
    sys.stdout.write(f"{server.getUrl()}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
