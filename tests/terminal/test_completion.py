"""Shells complete commands, options, words and files by the scripts that the command prints."""

import shutil
import subprocess

import pytest

from snapshot_explorer.terminal import completion
from tests.inner.terminal import main, names


def test_without_shtab_the_message_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(completion, "find_spec", lambda _: None)

    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err.endswith("Install it: pip install 'snapshot-explorer[completion]'.\n")


@pytest.fixture
def script(capsys):
    pytest.importorskip("shtab")

    def written(shell):
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return written


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_has_every_command(script, shell):
    text = script(shell)

    assert [name for name in [*names(), "demo", "notebook", "mcp", "completion"] if name not in text] == []
    assert "--no-maintenance" in text or "no-maintenance" in text


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_is_one_of_its_shell(script, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(script(shell))

    assert subprocess.run([shell, "-n", file], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bl"], ["blame"]),
        (["log", "/tmp", "--no-m"], ["--no-maintenance"]),
        (["log", "/tmp", "--kind", "app"], ["append"]),
        (["log", "{folder}/sh"], ["{folder}/shop"]),
        (["demo", "--h"], ["--help"]),
        (["completion", "f"], ["fish"]),
    ],
    ids=lambda value: " ".join(value) if value else "",
)
def test_bash_completes(script, tmp_path, words, expected):
    (tmp_path / "shop").mkdir()
    words = [word.format(folder=tmp_path) for word in words]
    line = " ".join(f"'{word}'" for word in ["snapshot-explorer", *words])
    ask = (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _shtab_snapshot_explorer; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )

    done = subprocess.run(
        ["bash", "-c", f"{script('bash')}\n{ask}"], check=False, capture_output=True, text=True, timeout=300
    )

    assert done.stdout.split() == [word.format(folder=tmp_path) for word in expected]
