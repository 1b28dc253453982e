"""A tag is published only if it agrees with the versions of the package and with the changelog."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from snapshot_explorer import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture
def release(tmp_path):
    """Run .ci/release in a copy whose changelog has a section, and return its status and what it printed."""
    (tmp_path / "snapshot_explorer").mkdir()
    for name in ("pyproject.toml", "snapshot_explorer/__init__.py", ".ci/release"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(tag, changelog, urls='\n[project.urls]\nRepository = "https://example.org/repository"\n'):
        settings = re.sub(r"\n\[project\.urls\]\n([^\[\n].*\n)*", "", (ROOT / "pyproject.toml").read_text())
        (tmp_path / "pyproject.toml").write_text(settings + urls)
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        command = [sys.executable, str(tmp_path / ".ci" / "release"), tag]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_notes_of_a_release_are_its_section(release):
    section = f"## [{__version__}] - 2026-12-01\n\n### Added\n\n- A.\n\n"
    text = f"# Changelog\n\n## [Unreleased]\n\n{section}## [0.0.1] - 2026-01-01\n\n- B.\n"

    assert release(f"v{__version__}", text) == (0, "### Added\n\n- A.\n", "")


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        (
            "v9.9.9",
            "## [9.9.9] - 2026-12-01\n\n- A.\n",
            f"The tag is v9.9.9, and the version in snapshot_explorer/__init__.py is {__version__}.",
        ),
        (__version__, f"## [{__version__}] - 2026-12-01\n\n- A.\n", f"The tag is {__version__}, "),
        (f"v{__version__}", "## [Unreleased]\n\n- A.\n", f"CHANGELOG.md has no section [{__version__}] with a date."),
        (f"v{__version__}", f"## [{__version__}] - 2026-12-01\n\n", f"CHANGELOG.md has no section [{__version__}]"),
    ],
)
def test_a_tag_that_does_not_agree_is_not_released(release, tag, changelog, said):
    status, printed, error = release(tag, changelog)

    assert (status, printed) == (1, "")
    assert error.startswith(said)


def test_a_package_without_a_public_address_is_not_released(release):
    status, _, error = release(f"v{__version__}", f"## [{__version__}] - 2026-12-01\n\n- A.\n", urls="")

    assert status == 1
    assert error.startswith("pyproject.toml has no [project.urls].")


def test_workflows_are_yaml_and_nothing_of_an_event_is_a_part_of_a_script():
    import yaml  # comes with the packages of the full tier

    for path in (ROOT / ".github").glob("workflows/*.yml"):
        jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
        scripts = [step["run"] for job in jobs.values() for step in job.get("steps", ()) if "run" in step]
        assert [script for script in scripts if re.search(r"\$\{\{", script)] == []
    assert (
        yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text("utf-8"))["runs"]["using"] == "composite"
    )


def test_the_recipe_for_conda_has_the_version_and_the_dependencies_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / ".github" / "conda" / "recipe.yaml").read_text("utf-8")

    (version,) = re.findall(r"^  version: (\d\S+)$", recipe, re.MULTILINE)
    run = re.findall(r"^    - (\S+) (>=\S+)$", recipe.split("  run:\n")[1].split("tests:")[0], re.MULTILINE)
    needed = [("python", project["requires-python"])]
    needed += [re.fullmatch(r"([\w-]+)(>=.+)", item).groups() for item in project["dependencies"]]
    assert version == __version__
    assert [(name.removeprefix("python-"), bound) for name, bound in run] == needed
