"""The guide's code runs, its generated pages are current, and what it links to or names exists."""

import json
import re
import unicodedata
from pathlib import Path

import pytest

from snapshot_explorer import errors
from snapshot_explorer.core import old_libraries
from tests.benchmarks import page as measurements
from tests.benchmarks import run_all
from tests.environments import __main__ as environments
from tests.scripts import guide_commands

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "notebooks" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
LINKED = [*PAGES, *guide_commands.QUESTIONS, ROOT / "README.md", ROOT / "snapshot_explorer" / "ARCHITECTURE.md"]


def without_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text):
    """Return the anchors that GitHub and JupyterLab make of the headings."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", title).lower()) for title in titles]
    return {one.replace(" ", "-") for one in plain}


def test_the_page_of_commands_is_what_the_code_says():
    assert guide_commands.PAGE.read_text("utf-8") == guide_commands.page(), "Run python -m tests.scripts.guide_commands"


@pytest.mark.parametrize("page", guide_commands.QUESTIONS, ids=lambda page: page.stem)
def test_a_page_of_a_question_shows_what_its_lines_show(page):
    assert page.read_text("utf-8") == guide_commands.question(page), "Run python -m tests.scripts.guide_commands"


def test_the_measurements_of_the_guide_are_those_of_the_last_runs():
    shown = {path: path.read_text("utf-8") for path in [measurements.PAGE, *measurements.pictures()]}
    assert shown == {measurements.PAGE: measurements.page(), **measurements.pictures()}, (
        "Run python -m tests.benchmarks.page"
    )
    commands = [run["command"] for run in json.loads(measurements.MEASURED.read_text("utf-8"))]
    assert commands == [one for one in map(run_all.shown, run_all.BENCHMARKS) if one in commands]


def test_the_environments_of_the_guide_are_those_of_the_last_runs():
    assert environments.PAGE.read_text("utf-8") == environments.page(), "Run python -m tests.environments --all --keep"


def test_every_environment_has_a_python_and_versions_that_the_package_allows():
    for image in environments.images().values():
        allowed = [
            not old_libraries.is_older(version, old_libraries.FLOORS.get(name, "0"))
            for name, version in image.pins.items()
        ]
        assert image.python in {"3.11", "3.12", "3.13"}
        assert all(allowed) == image.is_supported, image.name


def test_a_benchmark_that_fails_is_named_and_keeps_its_last_results(tmp_path, capfd):
    recording = (
        "from tests.benchmarks.report import record; import sys; record('read', 0.1234, {'peer': float(sys.argv[1])})"
    )
    (tmp_path / "good.py").write_text(recording)
    (tmp_path / "bad.py").write_text("raise SystemExit(3)")
    file, old = tmp_path / "runs.json", {"command": "bad.py", "results": ["old"]}
    file.write_text(json.dumps([old, {"command": "good.py 2", "results": ["old"]}]))

    failed, skipped = run_all.run_all(["bad.py", "good.py 2", "bad.py {deltalake}"], {}, {}, folder=tmp_path, file=file)

    runs = {run["command"]: run for run in json.loads(file.read_text())}
    assert failed == {"bad.py": "ended with exit code 3"}
    assert skipped == {"bad.py {deltalake}": "deltalake is missing"}
    assert runs["bad.py"] == old
    assert runs["good.py 2"]["results"] == [{"work": "read", "seconds": 0.123, "peers": {"peer": 2.0}}]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python\n" in page.read_text("utf-8")], ids=lambda p: p.stem
)
def test_the_python_of_a_page_runs(page, capsys):
    names = {}

    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page):
    text = page.read_text("utf-8")
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)

    assert broken == []


def test_every_error_is_explained():
    explained = set(re.findall(r"^## (\w+Error)$", (GUIDE / "troubleshooting.md").read_text("utf-8"), re.MULTILINE))
    raised = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.SnapshotExplorerError)
    }

    assert explained == raised - {"SnapshotExplorerError"}


def test_every_test_and_benchmark_that_is_named_exists():
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    named = set(re.findall(r"`(?:python )?(tests/[\w/]+(?:\.py|/))", text))
    benchmarks = set(re.findall(r"`([a-z_]+\.py)[` ]", (GUIDE / "performance.md").read_text("utf-8")))

    assert [name for name in named if not (ROOT / name).exists()] == []
    assert benchmarks
    assert [name for name in benchmarks if not (ROOT / "tests" / "benchmarks" / name).exists()] == []


def test_the_front_page_lists_every_page_every_notebook_and_ten_questions():
    text = (GUIDE / "index.md").read_text("utf-8")
    notebooks = {f"../{path.name}" for path in GUIDE.parent.glob("*.ipynb")}
    pages = {f"../questions/{page.name}" for page in guide_commands.QUESTIONS}
    questions = text.split("## Ten questions")[1]

    assert set(re.findall(r"^\| \[[^\]]+\]\((\w+\.md)\)", text, re.MULTILINE)) == {
        page.name for page in PAGES if page.stem != "index"
    }
    assert set(re.findall(r"\]\((\.\./[^)]+\.ipynb)\)", text)) == notebooks
    assert set(re.findall(r"^- \[[^\]]+\]\((\.\./questions/[^)]+)\)", text, re.MULTILINE)) == pages
    assert len(re.findall(r"^\| .*\]\(\w+\.md", questions, re.MULTILINE)) == 10


def test_the_site_has_every_page_and_every_notebook():
    listed = re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / ".github/site/mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    notebooks = {f"{path.stem}.md" for path in GUIDE.parent.glob("*.ipynb")}

    pages = {page.relative_to(GUIDE.parent).as_posix() for page in [*PAGES, *guide_commands.QUESTIONS]}
    assert pages | notebooks <= set(listed)
    assert len(listed) == len(set(listed))
