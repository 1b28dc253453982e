"""The versions that a bug report needs: Python, the platform, the package, its dependencies, Java."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEPENDENCIES = (
    "anywidget", "duckdb", "fastavro", "fsspec", "ipywidgets", "numpy", "orjson", "pandas", "plotly", "pyarrow",
)  # fmt: skip
"""The packages that this package requires."""
OPTIONAL = (
    "adlfs", "botocore", "datasketches", "gcsfs", "ipykernel", "ipython", "jupyterlab", "notebook",
    "pyiceberg", "pypaimon-rust", "pyspark", "s3fs", "traitlets",
)  # fmt: skip
"""Optional packages, which it uses directly or through its dependencies."""
_JAVA_SECONDS = 10
"""The timeout of `java -version`, in seconds."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Versions by name, which draw themselves as text. Contains no path, no user name and no setting."""

    versions: Mapping[str, str | None]
    """Versions in the order in which they are drawn; None for packages that are not installed."""

    def __repr__(self) -> str:
        width = max(map(len, self.versions))
        return "\n".join(f"{name:<{width}}  {version or '-'}" for name, version in self.versions.items())

    def to_dict(self) -> dict[str, str | None]:
        """Return the versions by name, for `json.dumps`."""
        return dict(self.versions)


def show_versions() -> Environment:
    """Return the versions of Python, the platform, this package, its dependencies and Java, for a bug report.

    The result draws itself as text; `show_versions().to_dict()` is for JSON. Imports none of the packages and starts no
    Spark. Runs `java -version` if there is a Java.
    """
    return Environment(
        {
            "snapshot-explorer": _version("snapshot-explorer"),
            "python": f"{platform.python_version()} ({platform.python_implementation()})",
            "platform": platform.platform(),
            "processors": str(os.cpu_count()),
            **{name: _version(name) for name in DEPENDENCIES},
            **{name: _version(name) for name in OPTIONAL},
            "java": _java(),
        }
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    """Return the version of Java that Spark would use; None if Java is missing or does not answer."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 - for `which`
    if command is None:
        return None
    try:
        answer = subprocess.run(  # noqa: S603 - the Java of this environment, without arguments of the user's
            [command, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', answer.stderr)
    return match[1] if match else None
