"""Install the package as a wheel into environments with pinned versions, and run tests there.

    python -m tests.environments oldest databricks-17.3
    python -m tests.environments --all
    python -m tests.environments oldest --essential

Each environment is a file of constraints in this folder; its comments name the Python release and, for some, another
package that is installed beside. The command makes the environment with uv, installs what is pinned and then the wheel
under the constraints. It fails if a version moved or `uv pip check` reports a conflict. Then it runs the contract of
all formats, the tables in `tests/data`, SQL and conditions, the explorer, and the notebooks 01, 02, 03 and 07 without
comparing their outputs.
With `--keep`, `notebooks/guide/environments.json` keeps the results, from which the table in `notebooks/guide/where.md`
is written. A Python release is looked for in pyenv, then as `pythonX.Y`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "notebooks" / "guide" / "where.md"
RESULTS = PAGE.with_name("environments.json")
TOOLS = ("pytest>=8.4", "pytest-xdist>=3.6", "hypothesis>=6.100", "nbval>=0.11", "ipykernel")
ESSENTIAL = (
    "tests/package/test_old_libraries.py",
    "tests/arrow/test_compute.py",
    "tests/rows/test_diff_everywhere.py",
    "tests/table/test_contract.py",
    "tests/formats/paimon/test_read_tables.py",
    "tests/formats/iceberg/test_tables.py",
    "tests/oracles/test_delta_kept.py",
)
"""The tests for .ci/run: rows of all formats, row diffs, and the cases of old libraries."""
OLDEST = "oldest"
"""The environment in which every case of these runs. Releases between it and the newest run those of the quick tier."""
TESTS = (
    *ESSENTIAL,
    "tests/arrow/test_orc_timestamps.py",
    "tests/engines/test_conditions.py",
    "tests/engines/test_sql.py",
    "tests/queries/test_sql.py",
    "tests/samples",
    "tests/formats/paimon/test_avro.py",
    "tests/jupyter/explorer/test_explorer.py",
    "tests/jupyter/explorer/test_views.py",
)
NOTEBOOKS = ("01_quickstart", "02_delta", "03_what_changed", "07_iceberg")
_EVERYTHING = (TESTS, ("--nbval-lax", *[f"notebooks/{name}.ipynb" for name in NOTEBOOKS]))
"""The arguments of the runs of pytest."""
INHERITED = ("PYTHON", "JUPYTER", "IPYTHON", "VIRTUAL_ENV", "SNAPSHOT_EXPLORER")
_IDLE_LOAD = 0.5
"""The load above which a machine does other work, which is marked beside the minutes."""
_BLOCK = re.compile(r"(<!-- environments[^>]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An environment to make."""

    name: str
    """The name of its file, without the ending."""
    title: str
    """What it is, and the date of its versions."""
    python: str
    """The Python release, such as 3.12."""
    beside: str | None
    """Another package that is installed first."""
    is_supported: bool
    """Whether its versions are allowed; those below the floors are only for trying."""
    pins: dict[str, str]
    """The pinned versions."""


class FailedError(Exception):
    """An environment does not hold what it must; the message says what."""


def images() -> dict[str, Image]:
    """Return all environments by name."""
    return {path.stem: _image(path) for path in sorted(FOLDER.glob("*.txt"))}


def _image(path: Path) -> Image:
    lines = path.read_text("utf-8").splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    options = dict(line.split(" ", 1) for line in comments[1:])
    return Image(
        name=path.stem,
        title=comments[0],
        python=options["python"],
        beside=options.get("beside"),
        is_supported="below" not in options,
        pins=dict(line.split("==") for line in lines if "==" in line),
    )


def run(image: Image, folder: Path, wheel: Path, clone: Path, *, is_essential: bool) -> dict[str, object]:
    """Make an environment below a folder, run all or only the essential tests of a clone, and return the table's row.

    Raises:
        FailedError: Something moved, conflicts, or a test fails.
    """
    start, load = time.monotonic(), os.getloadavg()[0]
    python = folder / image.name / "bin" / "python"
    uv = _uv()
    _check([uv, "venv", "-q", "--python", _python(image.python), str(python.parents[1])])
    target = ["--python", str(python)]
    install = [uv, "pip", "install", "-q", *target, "--constraint", str(FOLDER / f"{image.name}.txt")]
    first = [f"{name}=={version}" for name, version in image.pins.items()] + ([image.beside] if image.beside else [])
    if first:
        _check([*install, *first])
    before = _versions(uv, target)
    _check([*install, str(wheel), *TOOLS])
    after = _versions(uv, target)
    moved = [f"{name} {before[name]} to {after.get(name)}" for name in before if after.get(name) != before[name]]
    if moved and image.pins:
        raise FailedError(f"installed versions moved: {', '.join(moved)}")
    wrong = [name for name, version in image.pins.items() if after[name.lower()] != version]
    if wrong:
        raise FailedError(f"not at the pinned version: {', '.join(wrong)}")
    _check([uv, "pip", "check", *target])
    runs, workers = (_essential(image), 0) if is_essential else (_EVERYTHING, 2)
    tests = _tests(python, clone, runs, workers)
    return {
        "image": image.name,
        "title": image.title,
        "python": image.python,
        "versions": {name: after[name] for name in ("duckdb", "numpy", "pandas", "pyarrow")},
        "moved": moved,
        "tests": tests,
        "minutes": round((time.monotonic() - start) / 60, 1),
        "busy": load > _IDLE_LOAD,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _python(release: str) -> str:
    """Return the program of a Python release."""
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{release}.*/bin/python"))
    own = sys.executable if f"{sys.version_info.major}.{sys.version_info.minor}" == release else None
    command = next((str(path) for path in pyenv), None) or shutil.which(f"python{release}") or own
    if command is None:
        raise FailedError(f"Python {release} is not installed.")
    return command


def _uv() -> str:
    """Return the program of uv, which installs in seconds what takes pip minutes."""
    command = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if command is None:
        raise FailedError("uv is not installed. Run: pip install uv")
    return command


def _wheel(uv: str, folder: Path) -> Path:
    """Return the wheel of this clone."""
    _check([uv, "build", "-q", "--wheel", "--out-dir", str(folder), str(ROOT)])
    return next(folder.glob("*.whl"))


def _versions(uv: str, target: list[str]) -> dict[str, str]:
    listed = json.loads(_check([uv, "pip", "list", *target, "--format", "json"]))
    return {one["name"].lower(): one["version"] for one in listed}


def _copy(folder: Path) -> Path:
    """Return a copy of this clone without the package: tests that run in it import the wheel."""
    for name in ("tests", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _essential(image: Image) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of the only run of pytest in .ci/run."""
    return (ESSENTIAL if image.name == OLDEST else ("-m", "not full", *ESSENTIAL),)


def _tests(python: Path, clone: Path, runs: tuple[tuple[str, ...], ...], workers: int) -> int:
    """Run pytest with each of these arguments, and return how many tests passed.

    Each worker compiles and imports the new libraries and collects all tests: beside other tests none is faster.
    """
    options = ["-q", "-o", "addopts=", "-o", "filterwarnings=default", "--import-mode=importlib"]
    options += ["--disable-warnings", "-p", "no:cacheprovider", "-n", str(workers), "--dist", "loadfile"]
    passed = 0
    for arguments in runs:
        written = _check([str(python), "-m", "pytest", *options, *arguments], cwd=clone)
        passed += int(re.findall(r"(\d+) passed", written)[-1])
    return passed


def _check(command: list[str], cwd: Path = ROOT) -> str:
    """Return what a command writes.

    Raises:
        FailedError: It fails.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    environment["PATH"] = f"{Path(command[0]).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(command[:4])} ... failed:\n{(done.stdout + done.stderr)[-6000:]}")
    return done.stdout


def table(results: list[dict[str, object]]) -> str:
    """Return the table of the page."""
    lines = ["| environment | Python | pyarrow | duckdb | NumPy | pandas | moved | tests | minutes | date |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for one in sorted(results, key=lambda one: str(one["image"])):
        versions = [one["versions"][name] for name in ("pyarrow", "duckdb", "numpy", "pandas")]
        moved = ", ".join(one["moved"]) or "none"
        minutes = str(one["minutes"]) + ("\\*" if one["busy"] else "")
        cells = [one["image"], one["python"], *versions, moved, one["tests"], minutes, one["date"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the text of the guide's page with the table of the last runs."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    return _BLOCK.sub(lambda match: match[1] + table(results) + match[3], PAGE.read_text("utf-8"))


def _keep(result: dict[str, object]) -> None:
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    results = [one for one in results if one["image"] != result["image"]] + [result]
    RESULTS.write_text(json.dumps(sorted(results, key=lambda one: one["image"]), indent=1) + "\n", "utf-8")
    PAGE.write_text(page(), "utf-8")


def main() -> int:
    """Run the command; return 1 if an environment failed."""
    known = images()
    parser = argparse.ArgumentParser(prog="python -m tests.environments", description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="*", choices=[*known, []], metavar="IMAGE", help=", ".join(known))
    parser.add_argument("--all", action="store_true", help="all that are supported")
    parser.add_argument("--keep", action="store_true", help="write the results into the guide")
    parser.add_argument("--essential", action="store_true", help="run fewer tests, in two minutes")
    chosen = parser.parse_args()
    if chosen.keep and chosen.essential:
        parser.error("--keep needs all tests: leave out --essential")
    names = [name for name in known if known[name].is_supported] if chosen.all else chosen.images
    failed = []
    # The clone is copied before anything runs in it.
    with tempfile.TemporaryDirectory(prefix="environments-") as made:
        folder = Path(made)
        clone, wheel = _copy(folder / "clone"), _wheel(_uv(), folder)
        for name in names:
            try:
                result = run(known[name], folder, wheel, clone, is_essential=chosen.essential)
            except FailedError as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)  # noqa: T201
                continue
            finally:
                shutil.rmtree(folder / name, ignore_errors=True)
            print(f"{name}: {result['tests']} tests passed, no version moved, {result['minutes']} minutes", flush=True)  # noqa: T201
            if chosen.keep:
                _keep(result)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
