"""README's code runs, and names every command."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_in_the_readme_runs(block):
    exec(compile(block, str(README), "exec"), {})


def test_every_command_of_the_magic_is_in_the_readme():
    from snapshot_explorer.jupyter.catalogue import COMMANDS

    text = README.read_text(encoding="utf-8")

    assert [command.name for command in COMMANDS if f"%snapshot {command.name}" not in text] == []
