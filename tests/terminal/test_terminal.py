"""What a terminal shows: colors, links, a pager; and nothing of these in a pipe."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapshot_explorer import samples
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable
from tests.support.explorers import recorded

pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals")

COMMAND = [sys.executable, "-m", "snapshot_explorer"]
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    return shutil.copytree(samples.path("orders"), tmp_path_factory.mktemp("lake") / "orders")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal in which no path of a test is broken."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def terminal(monkeypatch):
    """Run the command with a real pseudo-terminal as its standard output, and return the status and what it shows."""
    for name in ("NO_COLOR", "PAGER", "TERM_PROGRAM", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "LESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def shown(*words):
        reader, writer = pty.openpty()
        with ThreadPoolExecutor(1) as pool:  # a terminal holds 4 kB that nobody reads
            reading = pool.submit(read_all, reader)
            with os.fdopen(writer, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
                patch.setattr(sys, "stdout", stream)
                status = main([str(word) for word in words])
            return status, reading.result(60)

    return shown


def read_all(reader):
    """Return what was written to a pseudo-terminal whose writers have closed it."""
    found = b""
    try:
        while part := os.read(reader, 65_536):
            found += part
    except OSError:  # how Linux says that it is closed
        pass
    os.close(reader)
    return found.decode().replace("\r\n", "\n")


def without_marks(text):
    return re.sub(r"\x1b\[[0-9;]*m|\x1b\]8;;.*?\x1b\\", "", text)


def test_a_terminal_gets_colors_and_the_same_text_as_a_pipe(terminal, capsys, orders):
    for words in (["log", orders], ["diff", orders, "7..8", "--manifests"], [orders]):
        status, shown = terminal(*words, "--no-pager")
        plain_status = main([str(word) for word in words])
        plain = capsys.readouterr().out

        assert (status, plain_status) == (0, 0)
        assert f"{ESCAPE}[1m" in shown
        assert ESCAPE not in plain
        assert [line.rstrip() for line in without_marks(shown).splitlines()] == plain.splitlines()


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_where_the_user_or_the_terminal_says_so(terminal, monkeypatch, orders, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    _, shown = terminal(orders, "--no-pager")

    assert "newest version" in shown
    assert ESCAPE not in shown


def test_the_path_is_a_link_in_a_terminal_that_has_links(terminal, monkeypatch, orders):
    assert "\x1b]8;;" not in terminal(orders, "--no-pager")[1]

    monkeypatch.setenv("VTE_VERSION", "7600")
    _, shown = terminal(orders, "--no-pager")

    assert re.search(
        rf"\x1b\]8;;file://[^/]+{re.escape(str(orders))}\x1b\\{re.escape(str(orders))}\x1b\]8;;\x1b\\", shown
    )


def test_json_has_no_marks(terminal, orders):
    assert ESCAPE not in terminal("log", orders, "--json", "--no-pager")[1]


@pytest.fixture
def pager(tmp_path, monkeypatch):
    """A pager that stores what it is given, and how it was started."""
    program = tmp_path / "pager.py"
    program.write_text(
        "import os, pathlib, sys\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "folder.joinpath('shown').write_text(sys.stdin.read(), 'utf-8')\n"
        "folder.joinpath('less').write_text(os.environ['LESS'])\n"
    )
    monkeypatch.setenv("PAGER", f"{sys.executable} {program}")
    return tmp_path


def test_text_goes_through_the_pager_of_the_user(terminal, monkeypatch, pager, orders):
    monkeypatch.setenv("PAGER", f"{sys.executable} {pager / 'pager.py'}")

    status, shown = terminal("log", orders)

    assert (status, shown) == (0, "")
    assert "History of orders" in (pager / "shown").read_text("utf-8")
    assert (pager / "less").read_text() == "FRX"


@pytest.mark.parametrize("words", [["--no-pager"], []])
def test_no_pager_where_none_is_wanted(terminal, monkeypatch, pager, orders, words):
    monkeypatch.setenv("PAGER", f"{sys.executable} {pager / 'pager.py'}" if words else "cat")

    _, shown = terminal("log", orders, *words)

    assert "History of orders" in shown
    assert not (pager / "shown").exists()


def test_a_pager_that_does_not_start_or_stops_early_is_no_error(terminal, monkeypatch, orders):
    monkeypatch.setenv("PAGER", "/not/there")
    assert "History of orders" in terminal("log", orders)[1]

    monkeypatch.setenv("PAGER", f"{sys.executable} -c pass")
    assert terminal("log", orders)[0] == 0


def test_the_pager_shows_the_status_of_the_command(terminal, pager, tmp_path, orders):
    damaged = shutil.copytree(orders, tmp_path / "damaged")
    next(damaged.glob("bucket-0/*.parquet")).unlink()

    assert terminal("verify", damaged)[0] == 1
    assert (pager / "shown").exists()


def test_errors_do_not_go_through_the_pager(terminal, pager, capsys, orders):
    status, _ = terminal("log", orders, "--jsn")

    assert status == 2
    assert "has no option --jsn" in capsys.readouterr().err
    assert not (pager / "shown").exists()


@pytest.mark.skipif(not shutil.which("less"), reason="less is not installed")
def test_less_shows_colors_and_ends_at_once_if_all_fits(orders):
    reader, writer = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("PAGER", "NO_COLOR", "LESS")}
    words = [*COMMAND, str(orders), "-n", "1"]
    with subprocess.Popen(
        words, stdin=writer, stdout=writer, stderr=writer, env=variables | {"TERM": "xterm", "LINES": "60"}
    ) as process:
        os.close(writer)
        shown = read_all(reader)
        process.wait(timeout=60)

    assert process.returncode == 0
    assert "newest version" in without_marks(shown)
    assert f"{ESCAPE}[1m" in shown


def test_a_reader_that_stops_ends_every_command_quietly(monkeypatch, orders):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # argparse ignores what its writes raise
    for words in (["log", str(orders)], ["--help"], ["sql", str(orders), "select 1", "--json"]):
        source, target = os.pipe()
        os.close(source)
        done = subprocess.run([*COMMAND, *words], check=False, stdout=target, stderr=subprocess.PIPE, text=True)
        os.close(target)

        assert (done.returncode, done.stderr) == (141, "")


@pytest.fixture(scope="module")
def lake(tmp_path_factory, orders):
    """A folder with a table, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(orders, folder / "orders")
    broken = folder / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / f"{0:020}.json").write_text("{")
    return folder


@pytest.mark.parametrize(
    "words",
    [["lake"], ["lake", "--list"], ["lake", "--pin"], ["lake", "--changes"], ["lake", "--diff", "1h"], []],
    ids=" ".join,
)
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_table_of_a_lake_that_cannot_be_read_has_an_exit_status(capsys, lake, orders, words, options):
    name, *others = words or [""]
    line = [*filter(None, [name]), "{}", *others, *(options if name else [])]

    assert main([word.format(lake) for word in line]) == 2
    assert "broken" in capsys.readouterr().out or (words, options) == (["lake", "--changes"], ["--json"])
    assert main([word.format(orders.parent) for word in line]) == 0


def test_a_column_named_problem_in_a_table_is_no_problem(capsys, orders):
    assert main(["sql", str(orders), "select 'x' as problem"]) == 0


def test_the_demo_shows_a_sample_and_lines_that_can_be_typed(capsys):
    assert main(["demo"]) == 0

    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if line.startswith("snapshot-explorer ")]
    assert "newest version  18" in shown
    assert "14 rows updated" in shown
    assert "not counted" not in shown
    assert [line.split()[1] for line in lines] == ["diff", "bisect", "blame"]
    path = lines[0].split()[2]
    assert Path(path) == Path(samples.__file__).parent / "orders"
    assert [main(shlex.split(line)[1:]) for line in lines] == [0, 0, 0]


def test_the_demo_has_every_sample_and_names_them(capsys):
    assert main(["demo", "rides"]) == 0
    assert "hudi" in capsys.readouterr().out
    assert main(["demo", "ordrs"]) == 2
    assert "Did you mean orders?" in capsys.readouterr().err


def test_help_and_explore_answer_in_a_terminal(capsys, monkeypatch, orders):
    assert main(["help"]) == 0
    assert capsys.readouterr().out.count("\n") == 10
    assert main(["help", "log"]) == 0
    assert capsys.readouterr().out.startswith("snapshot-explorer log PATH")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explore", str(orders)]) == 0
    shown = capsys.readouterr().out
    *picture, page = shown.splitlines()
    assert max(map(len, picture)) == 80
    assert page == f"As a page that needs no Python: snapshot-explorer {orders} --html orders.html"
    assert "A picture of the explorer." in shown
    assert "Run this in a notebook for the explorer itself." in shown
    assert main(["explore", f"{orders}/nothing"]) == 2


def test_a_page_is_written_by_the_path_alone_and_by_explore(capsys, tmp_path):
    orders, file = samples.path("invoices"), tmp_path / "orders.html"

    assert main([orders, "--html", str(file), "--versions", "1"]) == 0
    assert re.fullmatch(rf"Wrote {file}, \d+ kB\.\n", capsys.readouterr().out)
    assert len([name for name in recorded(file.read_text("utf-8")) if name.startswith("commit ")]) == 1
    assert main(["explore", orders, f"--html={file}"]) == 2
    assert "exists. Choose another file, or replace it with --overwrite." in capsys.readouterr().err
    assert main(["explore", f"{orders}/nothing", "--html", str(tmp_path / "new.html")]) == 2
    assert main(["explore", orders, "--html", str(tmp_path / "new.html"), "--versions", "few"]) == 2
    assert main(["explore", orders, "--versions", "3"]) == 2
    assert capsys.readouterr().err.endswith("--versions needs --html. Add it, or leave out --versions.\n")
    assert [item.name for item in tmp_path.iterdir()] == ["orders.html"]


def test_a_folder_of_the_same_name_does_not_hide_a_command(capsys, monkeypatch, tmp_path, orders):
    (tmp_path / "mcp").mkdir()
    shutil.copytree(orders, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)

    assert main(["mcp", "--allow", "none"]) == 2
    assert f"{tmp_path / 'none'} is not a folder." in capsys.readouterr().err
    assert main(["demo", "rides"]) == 0
    assert "hudi" in capsys.readouterr().out
    assert main(["demo"]) == 0
    assert capsys.readouterr().out.startswith("demo\n")


def test_a_word_too_many_is_an_error_with_the_usage(capsys):
    assert main(["demo", "rides", "x"]) == 2
    assert "unrecognized arguments: x" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a process")
def test_ctrl_c_is_for_the_pager(terminal, monkeypatch, tmp_path, orders):
    program = tmp_path / "interrupts.py"
    program.write_text("import os, signal, sys\nos.kill(os.getppid(), signal.SIGINT)\nsys.stdin.read()\n")
    monkeypatch.setenv("PAGER", f"{sys.executable} {program}")
    before = signal.getsignal(signal.SIGINT)

    assert terminal("log", orders)[0] == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_the_merge_of_a_three_way_diff_is_written_as_sql_by_the_name_that_notebooks_have(tmp_path, capsys):
    table = DeltaTable(None, tmp_path / "orders", fields=[("id", "long"), ("name", "string")])
    table.append([(1, "a"), (2, "b")])
    csv = tmp_path / "theirs.csv"
    csv.write_text("id,name\n1,a\n2,c\n")
    words = [
        "diff3",
        table.root,
        "latest",
        str(csv),
        "--base",
        "latest",
        "--key",
        "id",
        "--sql",
        "--name",
        "shop.orders",
    ]

    assert main(words) == 0

    shown = capsys.readouterr().out
    assert "MERGE INTO `shop`.`orders` AS current" in shown
    assert "rows to expect  0 inserted, 1 updated, 0 deleted" in shown
