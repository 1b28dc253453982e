"""The floors, and the cases of old libraries: each case is a problem exactly below the version that fixes it."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.core import old_libraries
from snapshot_explorer.errors import MissingDependencyError, UnsupportedFeatureError
from tests.inner.engines_spark import spark_schema

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
NAMES = {id(case): name for name, case in vars(old_libraries).items() if isinstance(case, old_libraries.OldLibraryCase)}


@pytest.fixture
def installed(monkeypatch):
    """A function that makes the given versions the installed ones."""

    def install(**versions):
        monkeypatch.setattr(old_libraries, "installed_version", lambda name: versions.get(name, "9999"))

    return install


def test_the_floors_are_those_of_the_package():
    assert PROJECT["dependencies"] == [f"{name}>={floor}" for name, floor in old_libraries.FLOORS.items()]
    assert PROJECT["optional-dependencies"]["spark"] == [f"pyspark[connect]>={old_libraries.SPARK_FLOORS['pyspark']}"]


def test_every_case_is_listed():
    assert sorted(map(id, old_libraries.CASES)) == sorted(NAMES)


@pytest.mark.parametrize("case", old_libraries.CASES, ids=lambda case: NAMES[id(case)])
def test_a_case_is_above_the_floor_and_can_be_reproduced_where_it_applies(case):
    assert old_libraries.is_older((old_libraries.FLOORS | old_libraries.SPARK_FLOORS)[case.library], case.fixed_in)
    if importlib.util.find_spec(case.library) is None:
        pytest.skip(f"{case.library} is not installed: pip install {case.library}")

    # On a busy machine pyarrow 26 may abort while Python ends and its threads still run: that is not the case.
    code = f"{case.reproduction}\nimport os; os._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode != 0) == case.applies(), done.stderr


@pytest.mark.parametrize("code", ["import snapshot_explorer", "from snapshot_explorer import open_table"])
def test_a_library_that_is_older_than_its_floor_is_named_at_import(tmp_path, code):
    for name, version in (("pyarrow", "14.0.1"), ("duckdb", "1.0.0")):
        (tmp_path / f"{name}-{version}.dist-info").mkdir()
        (tmp_path / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr.splitlines()[-1] == (
        "snapshot_explorer.core.errors.MissingDependencyError: snapshot_explorer does not work with this environment: "
        "duckdb 1.0.0 is older than 1.1 and pyarrow 14.0.1 is older than 18.0. "
        "Run: pip install 'duckdb>=1.1' 'pyarrow>=18.0'"
    )


@pytest.mark.parametrize("version", ["18.0", "18.0.2", "18.0.2+vendor", "18.1.dev3", "26"])
def test_a_version_from_the_floor_on_is_accepted(installed, version):
    installed(pyarrow=version)

    old_libraries.check_floors()


@pytest.mark.parametrize("version", ["17.9.9", "17", "17.0", "9.30"])
def test_a_version_below_the_floor_is_refused(installed, version):
    installed(pyarrow=version)

    with pytest.raises(MissingDependencyError, match=re.escape(f"pyarrow {version} is older than 18.0")):
        old_libraries.check_floors()


def test_a_library_without_metadata_is_left_to_its_import(installed):
    installed(pyarrow=None)

    old_libraries.check_floors()


def test_what_fixes_a_case_is_a_command(installed):
    installed(duckdb="1.3.2")

    assert old_libraries.DUCKDB_NANOSECONDS.applies()
    assert old_libraries.DUCKDB_NANOSECONDS.remedy() == (
        "duckdb 1.3.2 is too old for it. Run: pip install 'duckdb>=2.0'"
    )


def test_a_pyspark_that_is_older_than_its_floor_is_named(installed):
    pytest.importorskip("pyspark")
    installed(pyspark="3.4.4")

    with pytest.raises(
        MissingDependencyError, match=r"pyspark 3\.4\.4 is older than 3\.5\. Run: pip install 'pyspark>=3\.5'"
    ):
        open_table(samples.path("orders")).current.to_spark()


def test_what_pyspark_3_5_lacks_is_refused_with_the_version_that_has_it(installed, monkeypatch):
    pytest.importorskip("pyspark")
    # What another test of the same process has loaded is not checked again.
    monkeypatch.delitem(vars(snapshot_explorer), "SnapshotDataSource", raising=False)
    monkeypatch.delitem(sys.modules, "snapshot_explorer.spark", raising=False)
    installed(pyspark="3.5.9")
    orders = open_table(samples.path("orders"))
    variants = open_table(str(Path(__file__).parents[1] / "data" / "delta" / "variants")).current.arrow_schema

    for refused in (
        lambda: snapshot_explorer.SnapshotDataSource,
        lambda: orders.diff_rows(7, 8, engine="spark"),
        lambda: spark_schema(variants),
    ):
        with pytest.raises(
            (MissingDependencyError, UnsupportedFeatureError),
            match=r": pyspark 3\.5\.9 is too old for it\. Run: pip install 'pyspark>=4\.0'\.",
        ):
            refused()


def test_no_other_module_compares_versions():
    package = Path(old_libraries.__file__).parents[1]
    compared = re.compile(r"__version__\s*[<>]|version_info|parse_version|metadata\.version\(")
    modules = [path for path in package.rglob("*.py") if compared.search(path.read_text("utf-8"))]

    assert sorted(path.relative_to(package).as_posix() for path in modules) == [
        "core/environment.py",
        "core/old_libraries.py",
    ]
