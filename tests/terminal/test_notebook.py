"""`snapshot-explorer notebook PATH` writes a notebook that runs, and starts JupyterLab with it."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from snapshot_explorer import samples
from snapshot_explorer.terminal import notebook as program
from tests.inner.terminal import main


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A folder, and the lines by which JupyterLab is started; in its place a process that ends with status 3."""
    started = []
    real = program.subprocess.Popen

    def popen(words):
        started.append(words)
        return real([sys.executable, "-c", "raise SystemExit(3)"])

    monkeypatch.setattr(program.subprocess, "Popen", popen)
    monkeypatch.setattr(program, "find_spec", lambda name: name)
    monkeypatch.chdir(tmp_path)
    return tmp_path, started


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    return shutil.copytree(samples.path("orders"), tmp_path_factory.mktemp("lake") / "orders")


def cells(path):
    content = json.loads(Path(path).read_text("utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    return [cell["source"] for cell in content["cells"]]


def test_a_notebook_that_opens_the_table_is_written_and_started(lab, orders):
    folder, started = lab

    status = main(["notebook", str(orders), "--no-browser"])

    assert status == 3  # of JupyterLab
    assert started == [[sys.executable, "-m", "jupyterlab", "orders.ipynb", "--no-browser"]]
    assert cells(folder / "orders.ipynb") == [
        "%load_ext snapshot_explorer", f"%snapshot open {orders} as orders", "%snapshot log", "%snapshot explore"
    ]  # fmt: skip


def test_what_is_written_is_a_notebook_for_jupyter_and_its_cells_run(lab, orders):
    nbformat = pytest.importorskip("nbformat")
    from IPython.core.interactiveshell import InteractiveShell

    main(["notebook", str(orders)])

    nbformat.validate(nbformat.read("orders.ipynb", as_version=4))
    shell = InteractiveShell()
    for source in cells("orders.ipynb")[:3]:
        shell.run_cell(source).raise_error()
    assert shell.user_ns["orders"].current.version == 18
    shell.extension_manager.unload_extension("snapshot_explorer")
    shell.history_manager.end_session()
    shell.restore_sys_module_state()


def test_no_notebook_is_overwritten(lab, orders):
    folder, started = lab
    for _ in range(3):
        main(["notebook", str(orders)])

    assert [words[3] for words in started] == ["orders.ipynb", "orders-2.ipynb", "orders-3.ipynb"]
    assert sorted(path.name for path in folder.iterdir()) == ["orders-2.ipynb", "orders-3.ipynb", "orders.ipynb"]


def test_a_folder_of_tables_opens_as_a_lake(lab, orders):
    main(["notebook", str(orders.parent), "--file", "night.ipynb"])

    assert cells("night.ipynb")[1] == f"%snapshot lake {orders.parent} as lake"


def test_storage_options_stay_in_their_file(lab, orders, tmp_path):
    options = tmp_path / "options.json"
    options.write_text("{}")

    main(["notebook", str(orders), "--storage-options", str(options)])

    assert str(options) in cells("orders.ipynb")[1]
    assert cells("orders.ipynb")[2] == f"%snapshot open {orders} as orders --options options"


def test_a_secret_in_a_url_is_not_written(lab, capsys):
    folder, started = lab

    status = main(["notebook", "https://host/orders?sig=SECRET"])

    said = capsys.readouterr().err
    assert (status, started, list(folder.iterdir())) == (2, [], [])
    assert "The URL contains a secret" in said
    assert "SECRET" not in said


def test_what_is_no_table_starts_nothing(lab, capsys, tmp_path):
    assert main(["notebook", str(tmp_path / "none")]) == 2
    assert lab[1] == []
    assert f"table at {tmp_path / 'none'}: the folder is missing" in capsys.readouterr().err


def test_the_folder_of_a_table_is_not_written_to(lab, capsys, orders, monkeypatch):
    monkeypatch.chdir(orders)

    assert main(["notebook", str(orders)]) == 2
    assert "is in the table" in capsys.readouterr().err
    assert not list(orders.glob("*.ipynb"))


def test_without_jupyterlab_the_message_says_what_to_install(monkeypatch, capsys, orders):
    monkeypatch.setattr(program, "find_spec", lambda _: None)

    assert main(["notebook", str(orders)]) == 2
    assert capsys.readouterr().err == (
        "notebook starts JupyterLab, which is not installed. Install it: pip install jupyterlab; or run "
        "uvx --with jupyterlab snapshot-explorer notebook PATH.\n"
    )
