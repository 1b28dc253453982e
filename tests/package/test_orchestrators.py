"""The examples of the guide for Airflow, Dagster and pre-commit, with the real libraries in new environments."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from snapshot_explorer import samples

PAGE = Path(__file__).parents[2] / "notebooks" / "guide" / "checks.md"
DAGSTER = """
from dagster import asset, materialize
@asset
def orders(): pass
done = materialize([orders, orders_are_sound])
for found in done.get_asset_check_evaluations(): print(found.passed, found.metadata["report"].value.splitlines()[0])
"""
AIRFLOW = """
check.execute({})
print("passes")
check.bash_command = check.bash_command.replace("rows < 0.5 * previous", "rows > 0")
try:
    check.execute({})
except Exception as error:
    print("fails:", error)
"""


@pytest.fixture
def example(tmp_path):
    """Return a block of the page by its heading, about a sample."""
    path = shutil.copytree(samples.path("orders"), tmp_path / "orders")

    def block(heading):
        section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
        (text,) = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
        return text.replace("s3://lake/shop.db/orders", str(path)).replace("tests/tables", str(path))

    return block


@pytest.fixture(scope="module")
def environment(new_environment):
    made = new_environment()
    made.install(".", "dagster", "pre-commit")
    return made


def test_dagster_has_the_result_of_a_check(example, environment, tmp_path):
    # The newest commit of the sample is long ago, so that it is late.
    said = environment.run("python", "-c", example("Dagster") + DAGSTER, cwd=tmp_path)

    assert "False ### ❌ orders: 3 checks: 1 failed" in said


def test_airflow_fails_where_the_check_does(example, new_environment, tmp_path):
    environment = new_environment()
    environment.install(".", "apache-airflow", "apache-airflow-providers-standard")
    text = example("Airflow").replace("late,anomaly,", "").replace("load >> check", "")
    text = text.replace("/run/secrets/storage.json", "")

    said = environment.run("python", "-c", text + AIRFLOW, cwd=tmp_path, path="/usr/bin")

    assert "passes\n" in said
    assert "fails: Bash command failed. The command returned a non-zero exit code 1." in said


def test_pre_commit_runs_the_check(example, environment, tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / ".pre-commit-config.yaml").write_text(example("pre-commit"))
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=repository, check=True)

    said = environment.run("pre-commit", "run", cwd=repository, path=str(Path(shutil.which("git")).parent))

    assert re.search(r"tables\.+Passed", said)
