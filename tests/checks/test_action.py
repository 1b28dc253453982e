"""The action for GitHub: its script runs the check, and its inputs are never a part of a command line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from snapshot_explorer import samples

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "check"
pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")


@pytest.fixture
def action(tmp_path):
    """Run the script as a runner does, and return the status, and what it wrote to the summary and the outputs."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in {
        "snapshot-explorer": f'exec "{sys.executable}" -m snapshot_explorer "$@"',
        "gh": f'printf "%s\\n" "$@" > "{tmp_path}/gh"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)

    def run(path, **inputs):
        files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        variables = {"RUNNER_TEMP": str(tmp_path), "CHECK_PATH": str(path)} | {
            name: str(file) for name, file in files.items()
        }
        variables |= {f"CHECK_{name.upper()}": value for name, value in inputs.items()}
        done = subprocess.run(
            ["bash", str(ACTION / "run")],
            env=os.environ | variables | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        return done.returncode, files["GITHUB_STEP_SUMMARY"].read_text("utf-8"), files["GITHUB_OUTPUT"].read_text()

    return run


@pytest.mark.parametrize(
    ("rules", "status", "verdict"),
    [("rows < 1", 0, "passed"), ("rows > 1", 1, "1 check: 1 failed"), ("rows <", 2, "is not SQL")],
)
def test_the_status_of_the_check_is_the_status_of_the_step(action, tmp_path, rules, status, verdict):
    returned, summary, output = action(samples.path("orders"), fail_on=rules, since="30d")

    assert (returned, output) == (status, f"status={status}\n")
    assert verdict in summary
    assert (tmp_path / "checks.xml").exists() == (status < 2)
    assert not (tmp_path / "gh").exists()


def test_the_result_is_a_comment_where_that_is_requested(action, tmp_path):
    action(samples.path("orders"), fail_on="rows < 1", comment="17")

    words = (tmp_path / "gh").read_text().splitlines()
    assert words[:4] == ["pr", "comment", "17", "--body-file"]
    assert Path(words[4]).read_text("utf-8").startswith("### ")


def test_inputs_are_not_run(action, tmp_path):
    status, summary, _ = action(f"$(touch {tmp_path}/run)", fail_on='"; touch run; "', since="`touch run`")

    assert status == 2
    assert "The check did not run" in summary
    assert not (tmp_path / "run").exists()


def test_every_input_reaches_the_script_as_a_variable():
    text = (ACTION / "action.yml").read_text("utf-8")
    steps = text.split("runs:")[1]

    assert re.findall(r"run: .*\$\{\{", steps) == []
    for name in re.findall(r"^  ([a-z-]+):$", text.split("outputs:")[0].split("inputs:")[1], re.MULTILINE):
        assert f"inputs.{name}" in steps
