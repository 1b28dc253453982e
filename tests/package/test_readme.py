"""README's tour runs, and its pictures are there; the guide's tables of formats say what the code does."""

import re
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from snapshot_explorer import errors, explore
from snapshot_explorer.jupyter.explorer import Explorer

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
(TOUR,) = re.findall(r"```ipython\n(.*?)```", TEXT, re.DOTALL)
GUIDE = README.parent / "notebooks" / "guide"
PAIMON, DELTA = (GUIDE / "formats.md").read_text("utf-8").split("## Apache Paimon")[1].split("## Delta Lake")
LONGEST = 70


def cells(text, row):
    """Return what a row of a table says is read, and what is refused."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    return line.split("|")[2:4]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def shell():
    made = InteractiveShell()
    yield made
    if "snapshot_explorer" in made.extension_manager.loaded:
        made.extension_manager.unload_extension("snapshot_explorer")
    made.history_manager.end_session()
    made.restore_sys_module_state()


def test_the_tour_runs_and_the_calls_of_its_commands_find_the_same(shell):
    calls = re.findall(r"`((?:orders\.|explore\()[^`]+)`", TEXT.split("shorthand for one call")[1].split("\n\n")[0])
    with capture_output():
        for line in TOUR.splitlines():
            shell.run_cell(line).raise_error()
        shown = shell.user_ns["_"]
        names = shell.user_ns | {"explore": explore}
        history, differing, bad, explorer = [eval(call, names) for call in calls]
        shown.close()
        explorer.close()

    assert len(TOUR.splitlines()) == 8
    assert isinstance(shown, Explorer)
    assert isinstance(explorer, Explorer)
    assert (len(history), differing.updated.num_rows) == (8, 16)
    assert len(bad) == 14
    assert shell.user_ns["bad"].equals(bad)


def test_the_query_over_two_versions_returns_rows_of_both(shell):
    (query,) = re.findall(r"```text\n(%%snapshot sql\n.*?)```", (GUIDE / "sql.md").read_text("utf-8"), re.DOTALL)
    with capture_output():
        for line in TOUR.splitlines()[:4]:
            shell.run_cell(line).raise_error()
        found = shell.run_cell(query).result

    assert found["orders"].sum() == 41
    assert found["before"].sum() > found["after"].sum()


def test_the_reader_features_of_delta_are_listed_as_they_are_read():
    from tests.inner.delta import READER_FEATURES

    read, refused = cells(DELTA, "reader features")

    assert set(names(read)) == {one.keyword for one in READER_FEATURES if one.status == "read"}
    assert set(names(refused)) == {one.keyword for one in READER_FEATURES if one.status == "refused"}


@pytest.mark.parametrize("option", [name for row in ("rows", "wide rows") for name in names(cells(PAIMON, row)[1])])
def test_the_options_of_paimon_that_are_called_refused_are_refused_by_name(option):
    from tests.inner.paimon import PaimonSchema, check_table

    schema = PaimonSchema(id=0, fields=(), partition_keys=(), primary_keys=(), options={}, comment=None)
    with pytest.raises(errors.UnsupportedFeatureError, match=re.escape(option)):
        check_table(schema, {option: "true"}, 1)


@pytest.mark.parametrize("name", ["csv", "json", "lance", "vortex"])
def test_the_files_that_are_called_refused_are_refused_by_name(name):
    from tests.inner.paimon import file_format

    assert name in cells(PAIMON, "data files")[1]
    with pytest.raises(errors.UnsupportedFeatureError, match=f"files of the format {name}"):
        file_format(f"data-1.{name}", 1)


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= LONGEST


def test_every_picture_is_shown_and_each_for_both_themes():
    index = (GUIDE / "index.md").read_text("utf-8")
    pictures = re.findall(r'(?:srcset|src)="(?:notebooks|\.\.)/pictures/([^"]+)"', TEXT + index)
    folder = README.parent / "notebooks" / "pictures"
    figures = re.findall(r"\]\(\.\./pictures/([^)]+\.svg)\)", (GUIDE / "performance.md").read_text("utf-8"))

    assert sorted([*pictures, *figures]) == sorted(path.name for path in folder.iterdir())
    assert all("prefers-color-scheme:dark" in (folder / name).read_text() for name in figures)
    assert [name for name in pictures if name.replace("-dark", "-light") not in pictures] == []
    assert sum((folder / name).stat().st_size for name in pictures) < 1_000_000
