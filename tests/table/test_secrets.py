"""Canaries in options, URLs and the environment: no output of any call, failure, plan, page or file holds one."""

import copy
import functools
import io
import pickle
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

import nbformat
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from snapshot_explorer import check, open_lake, open_table, report
from snapshot_explorer.errors import SnapshotExplorerError, StorageError
from snapshot_explorer.table import parts_of
from tests.inner.storage import Mask
from tests.support.delta.table_builder import DeltaTable
from tests.support.explorers import all_texts, recorded
from tests.support.outputs import Lines, drawn, saved_by, shown_by
from tests.support.paimon.table_builder import PaimonTable
from tests.support.public_calls import arguments_for, calls

KEY, SECRET, TOKEN, HEADER, ENVIRONMENT, USER, SIGNATURE = CANARIES = (
    "canary-key-1f07",
    "canary secret/+=2b6c",
    "canary-token-3d90",
    "canary-header-4e55",
    "canary-environment-5a11",
    "canary-user-6c22",
    "canary-signature-7d33",
)
SPELLED = (*CANARIES, "canary%20secret", "canary+secret", "canary secret")
CANARY = Mask({"canaries": CANARIES}, ())
"""Finds canaries in base64, escaped or in capitals; it has tests of its own."""
SEARCHED = 50_000
OPTIONS = {
    "key": KEY,
    "secret": SECRET,
    "token": TOKEN,
    "client_kwargs": {"headers": [{"Authorization": HEADER}]},
}


class VaultError(Exception):
    """What a careless library raises: the options are in its text, its attributes and its causes."""

    def __init__(self, filesystem, path):
        super().__init__(f"{path} with {filesystem.given}")
        self.request = {"headers": filesystem.given}
        self.add_note(f"the secret was {SECRET}, of the environment {ENVIRONMENT}")


class Vault(MemoryFileSystem):
    """Reads memory:// and takes credentials; from the n-th request on it fails, and quotes them."""

    protocol = "vault"
    cachable = False
    fails_from = sys.maxsize
    asked = 0

    def __init__(self, **given):
        self.given = given
        super().__init__()

    @classmethod
    def _strip_protocol(cls, path):
        return (
            "/" + path.removeprefix("vault://").partition("@")[2].partition("?")[0].strip("/") if "@" in path else path
        )

    @staticmethod
    def _get_kwargs_from_urls(path):
        return {"user": USER} if "@" in path else {}

    def _counted(self, path):
        kind = type(self)
        kind.asked += 1
        if kind.asked > kind.fails_from:
            members = [VaultError(self, path), OSError(5, path, SECRET)]
            raise ExceptionGroup("several", members) from KeyError(f"{self.given}")

    def cat_file(self, path, start=None, end=None, **_):
        self._counted(path)
        return super().cat_file(path, start, end)

    def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
        self._counted(path)
        return super().ls(path, detail=detail)

    def info(self, path, **_):
        self._counted(path)
        return super().info(path)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, register):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ENVIRONMENT)
    monkeypatch.setattr(Vault, "fails_from", sys.maxsize)
    monkeypatch.setattr(Vault, "asked", 0)
    register(Vault)


def delta(root):
    table = DeltaTable(*root)
    for number in range(3):
        table.append([(number, "a")])
    table.checkpoint()
    return table


def paimon(root):
    table = PaimonTable(*root)
    for number in range(3):
        table.commit([(number, "a")])
    table.tag("v1", 2)
    return table


@pytest.fixture(params=[delta, paimon])
def url(request, memory_root):
    return f"vault://{USER}:{TOKEN}@{request.param(memory_root).root.strip('/')}?sig={SIGNATURE}"


def leaks_in(texts):
    """Return the texts with a canary, in whatever spelling."""
    return [text for text in set(texts) if has_canary(text)]


@functools.cache
def has_canary(text):
    parts = (text[start : start + SEARCHED] for start in range(0, len(text), SEARCHED))
    return any(item in text for item in SPELLED) or any(map(CANARY.has_secret, parts))


class Watch:
    """Everything that a process shows while the block runs."""

    def __init__(self):
        self.texts = []

    def __enter__(self):
        self._out, self._lines = io.StringIO(), Lines("snapshot_explorer")
        self._redirects = (redirect_stdout(self._out), redirect_stderr(self._out))
        for one in (self._lines, *self._redirects):
            one.__enter__()
        return self

    def __exit__(self, *failure):
        for one in (self._lines, *self._redirects):
            one.__exit__(*failure)
        self.texts += [self._out.getvalue(), *self._lines.lines]

    def ask(self, question):
        """Keep all that a question shows, whether it is answered or fails."""
        try:
            result = question()
            self.texts += [*drawn(result), *saved_by(result)]
        except SnapshotExplorerError as error:
            self.texts += shown_by(error)

    def leaks(self):
        return leaks_in(self.texts)


def test_no_answer_shows_a_secret(url):
    with Watch() as watch:
        table = open_table(url, storage_options=OPTIONS)
        questions = calls(arguments_for(table))
        for question in questions.values():
            watch.ask(partial(question, table))
        watch.ask(lambda: table.at(99))
        watch.ask(lambda: table.sql("select nothing from this"))
        watch.ask(lambda: open_table(f"{url}/nowhere", storage_options=OPTIONS))
        watch.ask(lambda: open_table(url, storage_options=OPTIONS, branch="no"))

    assert len(watch.texts) > 2 * len(questions)
    assert watch.leaks() == []


def test_no_failure_of_the_storage_shows_a_secret(url, monkeypatch):
    failures = 0
    questions = calls(arguments_for(open_table(url, storage_options=OPTIONS)))
    for name, question in questions.items():
        for reached in (0, 2):
            monkeypatch.setattr(Vault, "fails_from", sys.maxsize)
            table = open_table(url, storage_options=OPTIONS)
            monkeypatch.setattr(Vault, "asked", 0)
            monkeypatch.setattr(Vault, "fails_from", reached)
            with Watch() as watch:
                watch.ask(partial(question, table))
            failures += any("Could not read" in text for text in watch.texts)
            assert watch.leaks() == [], name

    assert failures > 20


def test_a_table_that_cannot_be_opened_shows_no_secret(url, monkeypatch):
    for reached in range(6):
        monkeypatch.setattr(Vault, "asked", 0)
        monkeypatch.setattr(Vault, "fails_from", reached)
        with Watch() as watch:
            watch.ask(lambda: open_table(url, storage_options=OPTIONS))
        assert watch.leaks() == []
        if reached == 0:
            assert any("Could not read" in text for text in watch.texts)


@pytest.mark.parametrize("reached", [sys.maxsize, 3])
def test_no_output_or_file_of_a_lake_holds_a_secret(url, tmp_path, monkeypatch, reached):
    with Watch() as watch:
        lake = open_lake(url, storage_options=OPTIONS)
        monkeypatch.setattr(Vault, "asked", 0)
        monkeypatch.setattr(Vault, "fails_from", reached)
        watch.ask(lambda: lake)
        watch.ask(lambda: lake.changes("2020-01-01"))
        watch.ask(lambda: lake.diff(lake))
        watch.ask(lake.at)
        watch.ask(lambda: lake.at().sql("select * from nothing"))
        result = check(lake, "late,unreadable,rows > 0")
        watch.texts += [*drawn(result), result.to_json(), result.to_markdown(), result.to_junit()]
        lake.at().to_json(tmp_path / "night.json")
        report(tmp_path / "lake.html", lake)
    watch.texts += [(tmp_path / name).read_text() for name in ("night.json", "lake.html")]

    assert len(result.lines) == 3 * len(lake)
    assert reached == sys.maxsize or any("Could not read" in line.found for line in result.lines)
    assert watch.leaks() == []


def test_cached_lifetimes_hold_no_secret(url, tmp_path):
    table = open_table(url, storage_options=OPTIONS)

    table.lifetimes(cache_dir=tmp_path)

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes() + str(path).encode()
        assert not [canary for canary in SPELLED if canary.encode() in content]


def test_a_saved_notebook_holds_no_secret(url, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance() if InteractiveShell.initialized() else InteractiveShell()
    notebook = nbformat.v4.new_notebook()
    cells = (
        "%snapshot open {url} as t --options options",
        "%snapshot log",
        "t",
        "%snapshot health",
        "%snapshot log --debug",
    )
    try:
        shell.push({"options": OPTIONS, "url": url})
        shell.run_line_magic("load_ext", "snapshot_explorer")
        for number, source in enumerate(cells):
            monkeypatch.setattr(Vault, "asked", 0)
            monkeypatch.setattr(Vault, "fails_from", 0 if number >= 3 else sys.maxsize)
            with capture_output() as captured:
                outcome = shell.run_cell(source)
            cell = nbformat.v4.new_code_cell(source)
            for text in (captured.stdout, captured.stderr, *(repr(one.data) for one in captured.outputs)):
                cell.outputs.append(nbformat.v4.new_output("stream", text=text))
            for result in (outcome.result, outcome.error_in_exec):
                texts = shown_by(result) if isinstance(result, BaseException) else drawn(result)
                cell.outputs += [nbformat.v4.new_output("stream", text=text) for text in texts]
            notebook.cells.append(cell)
    finally:
        shell.run_line_magic("unload_ext", "snapshot_explorer")
        InteractiveShell.clear_instance()

    saved = nbformat.writes(notebook)
    assert "version" in saved
    assert "Could not read" in saved
    assert leaks_in(output.text for cell in notebook.cells for output in cell.outputs) == []


def test_the_explorer_and_its_page_hold_no_secret(url, tmp_path):
    from snapshot_explorer.jupyter.explorer import Explorer

    explorer = Explorer(open_table(url, storage_options=OPTIONS), name="t", variables={}).wait()
    try:
        for tab in ("commit", "manifests", "compare", "data", "files", "health"):
            explorer.state.tab = tab
            explorer.wait()
            shown = repr(explorer._repr_mimebundle_()) + repr(explorer) + explorer.code
            assert not [canary for canary in SPELLED if canary in shown]
        page = explorer.to_html(tmp_path / "page.html", versions=1).read_text("utf-8")
        assert leaks_in([page, *all_texts(recorded(page))]) == []
    finally:
        explorer.close()


@pytest.mark.parametrize("make", [delta, paimon])
def test_what_a_real_client_of_s3_raises_shows_no_secret(s3_client, s3, memory_root, make):
    client, bucket, options = s3
    written = make(memory_root)
    for path in written.filesystem.find(written.root):
        key = path.strip("/").removeprefix(written.root.strip("/") + "/")
        client.put_object(Bucket=bucket, Key=f"t/{key}", Body=written.filesystem.cat_file(path))
    given = {**options, "key": KEY, "secret": SECRET, "token": TOKEN}
    once = {"config_kwargs": {"retries": {"mode": "standard", "total_max_attempts": 1}}}

    with Watch() as watch:
        table = open_table(f"s3://{bucket}/t", storage_options=given)
        for question in (table.history, table.current.files, table.current.to_arrow, lambda: table):
            watch.ask(question)
        watch.ask(lambda: open_table(f"s3://{bucket}/no", storage_options=given))
        watch.ask(lambda: open_table("s3://no-such-bucket/t", storage_options=given))
        for broken in (
            {"client_kwargs": {SECRET: TOKEN}},
            {"endpoint_url": f"http://{KEY}:{SECRET}@127.0.0.1:9/"} | once,
        ):
            watch.ask(lambda broken=broken: open_table(f"s3://{bucket}/t", storage_options={**given, **broken}))

    assert sum("Could not" in text for text in watch.texts) >= 3
    assert watch.leaks() == []


def test_reports_and_checks_hold_no_secret(url, tmp_path, monkeypatch):
    table = open_table(url, storage_options=OPTIONS)
    versions = table.versions()
    contents = []
    for reached in (sys.maxsize, 12):  # the second with failures of the storage in some parts
        monkeypatch.setattr(Vault, "asked", 0)
        monkeypatch.setattr(Vault, "fails_from", reached)
        with Watch() as watch:
            checked = check(table, "late,anomaly,schema-change,unreadable,duplicates,rows < previous", since="9000d")
            contents += [checked.to_markdown(), checked.to_junit(), checked.to_json(), repr(checked)]
            try:
                file = report(
                    tmp_path / "r.html", table, between=f"{versions[0]}..{versions[-1]}", where="1 = 1", overwrite=True
                )
                contents.append(file.read_text("utf-8"))
            except SnapshotExplorerError as error:
                contents += shown_by(error)
        contents += watch.texts

    assert any("Could not read" in text for text in contents)
    assert not [text for text in contents if any(canary in text for canary in SPELLED)]


def test_a_snapshot_from_a_pickle_asks_for_the_options(url):
    table = open_table(url, storage_options=OPTIONS)
    difference = table.diff_rows(table.versions()[0], "latest")
    saved = pickle.dumps((table.current, difference))

    snapshot, rows = pickle.loads(saved)

    assert leaks_in([saved.decode("latin-1")]) == []
    assert snapshot.version == table.current.version
    assert rows.to_arrow() == difference.to_arrow()
    for question in (snapshot.to_arrow, snapshot.files, lambda: snapshot.commit):
        with pytest.raises(StorageError, match=r"was restored from a pickle, .* open_table\(\.\.\., storage_options="):
            question()


def test_a_snapshot_without_options_is_read_from_its_pickle(memory_root):
    table = open_table(f"memory://{delta(memory_root).root}")

    assert pickle.loads(pickle.dumps(table.current)).to_arrow() == table.current.to_arrow()


def test_a_copy_keeps_its_options(url):
    snapshot = open_table(url, storage_options=OPTIONS).current

    assert (
        copy.copy(parts_of(snapshot).loaded.version).files() == copy.deepcopy(parts_of(snapshot).loaded.version).files()
    )
