"""The wheel is the package and its samples, and works by itself: without the repository, extras, or Java."""

import email
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import snapshot_explorer

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

SESSION = '''
import json
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in """
%load_ext snapshot_explorer
from snapshot_explorer import open_table, samples
import snapshot_explorer
paths = {name: samples.path(name) for name in samples.names()}
events = open_table(paths["events"])
invoices = open_table(paths["invoices"])
payments = open_table(paths["payments"])
rides = open_table(paths["rides"])
shipments = open_table(paths["shipments"])
%snapshot open {paths["orders"]} as orders
%snapshot open
%snapshot log --stat
%snapshot log --picture
%snapshot show latest~1
%snapshot show --schema
%snapshot manifests
%snapshot files
%snapshot files --where "amount < 0"
%snapshot diff 7..8 --files --manifests
%snapshot health
%snapshot retention --keep-last 3
%snapshot verify
%snapshot inspect options
%snapshot tags
%snapshot diff 7..8 --rows
%snapshot blame "order_id = 42"
%snapshot bisect "amount < 0"
%snapshot profile 6..9 --columns amount
found = snapshot_explorer.find_tables(paths["orders"])
rows = %snapshot load 8 --where "amount < 0"
sums = %snapshot sql "select count(*) as n from orders version as of 8"
figure = orders.history().picture()
explorer = %snapshot explore
%snapshot help
""".strip().splitlines():
    shell.run_cell(cell).raise_error()
names = shell.user_ns
summary = [
    str(shell.run_cell(cell).error_in_exec)
    for cell in (
        "orders.current.to_spark()",
        "%snapshot load --engine spark",
        "%snapshot sql --engine spark 'select * from orders'",
    )
]
print("", json.dumps({
    "file": names["snapshot_explorer"].__file__,
    "rows": len(names["rows"]),
    "count": int(names["sums"]["n"][0]),
    "versions": [names[name].current.version for name in names["paths"]],
    "spark": summary,
}), sep="\\n")
'''
MISSING = "Spark needs pyspark, which is not installed. Install it with: pip install 'snapshot-explorer[spark]'."


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the sdist, and the wheel that is built from it by the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as opened:
        return opened.namelist()


@pytest.fixture(scope="module")
def metadata(wheel, names):
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(opened.read(name))


@pytest.fixture(scope="module")
def known():
    """The files of the package that git has. What is new and not yet committed counts; what git ignores does not."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "snapshot_explorer"]
    found = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in found if name]


def test_it_holds_the_package_as_git_knows_it_and_nothing_else(names, known):
    about = f"snapshot_explorer-{snapshot_explorer.__version__}.dist-info"

    assert sorted(names) == sorted(
        [
            *known,
            *(f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")),
        ]
    )
    assert "snapshot_explorer/py.typed" in names


def test_the_sdist_holds_the_same_and_what_builds_it(built, known):
    (found,) = built.glob("*.tar.gz")
    more = ("CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore")

    with tarfile.open(found) as opened:
        names = [name.partition("/")[2] for name in opened.getnames()]

    assert sorted(names) == sorted([*known, *more])
    assert found.stat().st_size < 2_000_000


def test_it_holds_all_samples(names):
    for sample in snapshot_explorer.samples.names():
        assert any(name.startswith(f"snapshot_explorer/samples/{sample}/") for name in names)


def test_its_samples_come_without_the_scripts_that_made_them(names):
    code = [name for name in names if name.startswith("snapshot_explorer/samples/") and name.endswith(".py")]

    assert code == ["snapshot_explorer/samples/__init__.py"]


def test_it_stays_small(wheel):
    assert wheel.stat().st_size < 2_700_000


def test_its_metadata_say_what_it_is(metadata):
    assert metadata["Name"] == "snapshot-explorer"
    assert metadata["Version"] == snapshot_explorer.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True).decode().strip() == (ROOT / "README.md").read_text("utf-8").strip()
    assert metadata["Summary"]
    assert {"Framework :: Jupyter", "Programming Language :: Python :: 3", "Typing :: Typed"} <= set(
        metadata.get_all("Classifier")
    )
    assert metadata.get_all("Provides-Extra") == [
        "all",
        "catalogs",
        "completion",
        "ducklake",
        "mcp",
        "paimon-catalogs",
        "s3",
        "sketches",
        "spark",
        "test",
        "test-all",
    ]


def test_the_changelog_has_the_form_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    changes = {line for line in lines if line.startswith("### ")}

    assert lines[0] == "# Changelog"
    known = re.compile(r"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d")
    assert releases
    assert [line for line in releases if not known.fullmatch(line)] == []
    assert changes <= {f"### {kind}" for kind in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")}


def test_nothing_that_needs_java_is_required(metadata):
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]

    assert required
    assert [line for line in required if "spark" in line] == []


def test_by_itself_it_does_everything_but_spark_which_says_what_to_install(wheel, new_environment, tmp_path):
    environment = new_environment()
    environment.install("--constraint", "binder/constraints.txt", str(wheel))

    reported = json.loads(environment.python(SESSION, tmp_path).splitlines()[-1])

    assert Path(reported["file"]).is_relative_to(environment.folder)
    command = environment.folder / ("Scripts" if sys.platform == "win32" else "bin") / "snapshot-explorer"
    shown = subprocess.run([command, "demo"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "newest version  18" in shown
    assert reported["spark"] == [MISSING] * 3
    orders = snapshot_explorer.open_table(snapshot_explorer.samples.path("orders"))
    assert reported["rows"] == orders.at(8).count("amount < 0") > 0
    assert reported["count"] == orders.at(8).count()
    assert reported["versions"] == [
        snapshot_explorer.open_table(snapshot_explorer.samples.path(name)).current.version
        for name in snapshot_explorer.samples.names()
    ]
