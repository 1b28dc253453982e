"""Secrets of URLs that a table's own log contains, such as presigned names of files: no output shows them."""

import json
from functools import partial

import pytest

from snapshot_explorer import check, open_lake, open_table, report
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import CachedMetadata
from snapshot_explorer.table import Snapshot
from tests.inner.storage import Mask
from tests.support.delta.table_builder import DeltaTable
from tests.support.explorers import all_texts, recorded
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.outputs import Lines, chain_of, drawn, saved_by
from tests.support.paimon import table_builder
from tests.support.paimon.avro_schemas import newest_manifest
from tests.support.paimon.table_builder import PaimonTable
from tests.support.public_calls import Drawn, arguments_for, calls, drawings, proofs

PASSWORD, SIGNATURE, TOKEN = CANARIES = ("canary-password-8a40", "canary-signature-51be", "canary-token-03dc")
SECRETS = Mask({"canaries": CANARIES}, ())
PATHS = (
    f"https://bob:{PASSWORD}@host/a.parquet",
    f"https://host/b.parquet?X-Amz-Credential=key&X-Amz-Signature={SIGNATURE}",
    f"https://host/c.parquet#{TOKEN}",
    f"abfss://c@a.dfs.core.windows.net/d.parquet?sv=2024&SIG={SIGNATURE}",
    f"s3://KEY:{PASSWORD}@bucket/e.parquet",
    f"wasbs://c@a.blob.core.windows.net/f.parquet;sig={SIGNATURE}",
)


def delta(root, monkeypatch):
    del monkeypatch
    table = DeltaTable(*root, features=["deletionVectors"], configuration={"source": PATHS[0]})
    table.append([(0, "a")])
    for number, path in enumerate(PATHS):
        action = table.data(f"{number}.parquet", [(number, "a")])
        action["add"]["path"] = path
        vector = {"storageType": "p", "pathOrInlineDv": f"{path}.bin", "sizeInBytes": 1, "cardinality": 1}
        if number == 1:
            action["add"]["deletionVector"] = vector
        info = {"operationParameters": {"source": path, "nested": json.dumps({"from": path})}, "userMetadata": path}
        table.commit(action, operation="COPY INTO", info=info)
    table.checkpoint()
    table.commit({"remove": {"path": PATHS[0], "dataChange": True, "deletionTimestamp": 1_700_000_000_000}})
    return table.url


def iceberg(root, monkeypatch):
    del monkeypatch
    table = IcebergTable(*root, properties={"write.data.path": PATHS[0]})
    table.commit([(0, "a")])
    record = table.data_file

    for path in PATHS:
        table.data_file = lambda name, rows, path=path: record(name, rows) | {"file_path": path}
        table.commit([(1, "b")], source=path)
    table.commit(None, removed=["c.parquet"], operation="delete")
    return f"memory://{table.root}"


def paimon(root, monkeypatch):
    monkeypatch.setattr(table_builder, "MANIFEST", newest_manifest())
    table = PaimonTable(*root, options={"data-file.external-paths": PATHS[0]})
    table.commit([(0, "a")])
    entry = table.file_entry
    for path in PATHS:

        def elsewhere(kind, name, rows, path=path):
            made = entry(kind, name, rows)
            made["_FILE"]["_EXTERNAL_PATH"] = path
            return made

        table.file_entry = elsewhere
        table.commit([(1, "b")], commitUser=path, properties={"source": path})
    return f"memory://{table.root}"


@pytest.fixture(params=[delta, iceberg, paimon])
def url(request, memory_root, monkeypatch):
    return request.param(memory_root, monkeypatch)


def leaks_in(texts):
    parts = {text[start : start + 50_000] for text in texts for start in range(0, len(text), 50_000)}
    return [SECRETS(part) for part in parts if any(item in part for item in CANARIES) or SECRETS.has_secret(part)]


def asked(question):
    """Return all that a question shows, whether it is answered or refused."""
    try:
        result = question()
        # A pickled snapshot is its table's metadata, as it is.
        return [*drawn(result), *([] if isinstance(result, Snapshot | Drawn | CachedMetadata) else saved_by(result))]
    except SnapshotExplorerError as error:
        return [text for link in chain_of(error) for text in (str(link), repr(link), repr(link.args))]


def test_no_output_of_a_table_shows_a_secret_of_its_log(url):
    table = open_table(url)
    given = arguments_for(table)
    questions = calls(given) | drawings(given) | proofs(given, table)
    with Lines() as lines:
        leaks = {name: leaks_in(asked(partial(question, table))) for name, question in questions.items()}
    assert {name: texts for name, texts in leaks.items() if texts} == {}
    assert leaks_in(lines.lines) == []
    assert any(path.startswith("https://host/") for path in table.current.files()["path"].to_pylist())


def test_no_page_report_or_lake_shows_a_secret_of_a_log(url, tmp_path):
    from snapshot_explorer.jupyter.explorer import Explorer

    table = open_table(url)
    versions = table.versions()
    texts = asked(lambda: check(table, "late,anomaly,unreadable,rows < previous", since="9000d"))
    lake = open_lake(url)
    for question in (lake.overview, lambda: lake.changes("2020-01-01"), lake.at, lambda: lake.diff(lake)):
        texts += asked(question)
    report(tmp_path / "table.html", table, between=f"{versions[0]}..{versions[-1]}", overwrite=True)
    report(tmp_path / "lake.html", lake)
    texts += [(tmp_path / name).read_text() for name in ("table.html", "lake.html")]
    explorer = Explorer(table, name="t", variables={}).wait()
    try:
        for tab in ("commit", "manifests", "compare", "data", "files", "health"):
            explorer.state.tab = tab
            explorer.wait()
            texts += [repr(explorer.get_state()), repr(explorer._repr_mimebundle_()), repr(explorer), explorer.code]
        page = explorer.to_html(tmp_path / "page.html", versions=2).read_text("utf-8")
        texts += [page, *all_texts(recorded(page))]
    finally:
        explorer.close()

    assert leaks_in(texts) == []


def test_no_line_of_a_magic_or_of_the_terminal_shows_a_secret_of_a_log(url, capsys):
    from tests.inner.terminal import main

    for command in ("log", "files", "health", "verify", "orphans", "show", "readability", "retention"):
        for more in ([], ["--json"]):
            main([command, url, *more])

    captured = capsys.readouterr()
    assert "parquet" in captured.out
    assert leaks_in([captured.out, captured.err]) == []


def test_values_of_rows_stay_as_they_are(memory_root):
    link = f"https://bob:{PASSWORD}@host/t?sig={SIGNATURE}"
    table = DeltaTable(*memory_root, partition_by=("name",))
    table.append([(0,)], partition={"name": link})
    table.append([(0,)], partition={"name": link})
    opened = open_table(table.url)

    assert opened.current.to_arrow()["name"].to_pylist() == [link, link]
    assert opened.current.files()["partition"].to_pylist() == [[("name", link)]] * 2
    assert opened.current.duplicates()["name"].to_pylist() == [link]
    assert opened.diff_rows(1, 2).to_arrow()["name"].to_pylist() == [link]
    assert opened.diff_rows(1, 2).by_partition()["name"].to_pylist() == [link]
    assert link in opened.diff_rows(1, 2).to_csv()
