"""Names and values that would drive a terminal, turn text round or add a line to a log: they are escaped everywhere."""

import json
import re
import traceback
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pytest

from snapshot_explorer import check, open_lake, open_table, report
from snapshot_explorer.errors import SnapshotExplorerError
from tests.inner.history import log as management_log
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.outputs import Lines, drawn
from tests.support.paimon.table_builder import PaimonTable
from tests.support.public_calls import arguments_for, calls

EVIL = (
    "\x1b[31mred\x1b]0;t\x07\r\nFORGED\x85\x9b2J\N{RIGHT-TO-LEFT OVERRIDE}gnp\N{ZERO WIDTH SPACE}\N{LINE SEPARATOR}x"
    "\N{ARABIC LETTER MARK}\N{RIGHT-TO-LEFT ISOLATE}\N{ZERO WIDTH NO-BREAK SPACE}\N{LANGUAGE TAG}\N{SOFT HYPHEN}\x7fy"
)
RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""What no output may hold; a line break only where the program sets one."""


def delta(memory_root):
    fields = [("id", "long"), (EVIL, "string"), ("day", "string")]
    table = DeltaTable(
        *memory_root, fields=fields, partition_by=("day",), configuration={EVIL: EVIL, "delta.enableX": EVIL}
    )
    info = {
        "userName": EVIL,
        "operationParameters": {EVIL: EVIL},
        "operationMetrics": {EVIL: EVIL},
        "engineInfo": EVIL,
        "userMetadata": EVIL,
    }
    statistics = {"numRecords": 1, "minValues": {"id": 1, EVIL: EVIL}, "maxValues": {"id": 1, EVIL: EVIL}}
    for number in range(3):
        action = table.data(f"day={number}/{EVIL}.parquet", [(number, EVIL)], partition={"day": EVIL}, stats=statistics)
        table.commit(action, operation=EVIL, info=info)
    return table


def paimon(memory_root):
    table = PaimonTable(*memory_root, by_name=True, options={EVIL: EVIL})
    schema = json.loads(memory_root[0].cat_file(f"{table.root}/schema/schema-0"))
    schema["comment"] = EVIL
    schema["fields"][0]["description"] = EVIL
    schema["fields"].append({"id": 2, "name": EVIL, "type": "STRING"})
    table.write("schema/schema-0", json.dumps(schema).encode())
    for number in range(3):
        table.commit([(number, EVIL.replace("\n", ""))], commitUser=EVIL, properties={EVIL: EVIL})
    for name in ("plain", EVIL):
        table.tag(name, 2)
    for path in (f"branch/branch-{EVIL}/schema/schema-0", f"branch/branch-{EVIL}/snapshot/snapshot-1"):
        table.write(path, memory_root[0].cat_file(f"{table.root}/{path.split('/', 2)[2]}"))
    return table


def iceberg(memory_root):
    table = IcebergTable(*memory_root, properties={EVIL: EVIL})
    for number in range(3):
        snapshot = table.commit([(number, EVIL)], **{EVIL: EVIL, "engine-name": EVIL})
    table.tag(EVIL, snapshot)
    return table


TABLES = {"delta": delta, "paimon": paimon, "iceberg": iceberg}


@pytest.fixture(params=TABLES)
def table(request, memory_root):
    made = TABLES[request.param](memory_root)
    return open_table(f"memory://{made.root}"), made


def forged(text):
    """Return the lines of a text that the table wrote."""
    return [line for line in text.splitlines() if line.lstrip().startswith("FORGED")]


def test_nothing_that_a_table_holds_reaches_a_terminal_raw(table):
    opened, _ = table
    given = replace(arguments_for(opened), columns=(EVIL,))
    with Lines("snapshot_explorer") as logged:
        for name, call in calls(given).items():
            try:
                result = call(opened)
                texts = drawn(result) if type(result).__module__.startswith("snapshot_explorer") else []
            except SnapshotExplorerError as error:
                result, texts = None, [str(error), "".join(traceback.format_exception(error))]
            for text in (*texts, *texts_of(result)):
                assert not RAW.search(text), (name, text)
                assert not forged(text), (name, text)

    assert logged.lines
    for line in logged.lines:
        assert "\n" not in line
        assert not RAW.search(line), line


def texts_of(result):
    """Return the texts that a result is exported as for people and for other programs, but for CSV, which is data."""
    names = ("to_json", "to_markdown", "to_junit")
    return [getattr(result, name)() for name in names if not isinstance(result, pd.DataFrame) and hasattr(result, name)]


def test_json_has_the_same_values_as_the_rows(memory_root):
    opened = open_table(delta(memory_root).url)
    for rows in (opened.history(), opened.current.files(), opened.diff_rows(1, 2)):
        names = [field.name for field in rows.to_arrow().schema if field.type == pa.string()]
        values = [{name: row[name] for name in names} for row in rows.to_arrow().to_pylist()]

        assert [{name: row[name] for name in names} for row in json.loads(rows.to_json())] == values
        assert "\\u202e" in rows.to_json()


def test_csv_has_the_rows_as_they_are(memory_root):
    opened = open_table(delta(memory_root).url)
    difference = opened.diff_rows(1, 2)

    texts = difference.to_arrow()[EVIL].to_pylist()

    assert texts == [EVIL]
    assert EVIL in difference.to_csv()
    assert opened.current.to_arrow()[EVIL].to_pylist() == [EVIL] * 3


def test_a_lake_and_a_check_write_no_raw_character(table, tmp_path):
    opened, made = table
    lake = open_lake(f"memory://{made.root}")
    checked = check(opened, f"late,unreadable,{'rows < previous'}", since="9000d")

    for text in (
        lake.at().to_json(),
        lake.overview().to_json(),
        checked.to_json(),
        checked.to_markdown(),
        checked.to_junit(),
        report(tmp_path / "lake.html", lake).read_text(),
        report(tmp_path / "table.html", opened).read_text(),
    ):
        assert not RAW.search(text)


def test_the_terminal_prints_no_raw_character(table, capsys):
    for command in ("log", "files", "health", "tags", "inspect", "schema", "show"):
        for more in ([], ["--json"]):
            main([command, f"memory://{table[1].root}", *more])

    captured = capsys.readouterr()
    assert "\\u202e" in captured.out
    assert not RAW.search(captured.out + captured.err)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table: table.at(EVIL),
        lambda table: table.at(f"tag:{EVIL}2"),
        lambda table: table.history(EVIL),
        lambda table: table.history(kind=EVIL),
        lambda table: table.history(since=EVIL),
        lambda table: table.compare(EVIL),
        lambda table: table.inspect(EVIL),
        lambda table: table.sql(f'select "{EVIL}2" from this'),
        lambda table: table.sql("select nothing from this"),
        lambda table: table.sql("select * from no_such"),
        lambda table: table.current.to_arrow(columns=[f"{EVIL}2"]),
        lambda table: table.current.to_arrow(columns=["nothing"]),
        lambda table: table.current.to_arrow(where=f'"{EVIL}2" = 1'),
        lambda table: table.current.to_arrow(where="nothing = 1"),
        lambda table: table.current.to_arrow(where=f"id = '{EVIL}'"),
        lambda table: table.current.entries(EVIL),
        lambda table: open_table(table.path, branch=EVIL + "2"),
        lambda table: open_table(f"{table.path}/{EVIL}"),
        lambda table: open_table(table.path, format=EVIL),
    ],
)
def test_what_is_wrong_is_said_on_one_line(table, wrong):
    with pytest.raises(SnapshotExplorerError) as caught:
        wrong(table[0])

    assert str(caught.value).isprintable()
    assert all(not isinstance(one, str) or one.isprintable() for one in caught.value.args)


def is_damaged(path):
    return path[-1] in "12N" or EVIL in path or "schema" in path or path.endswith("-1.avro")


def damage(memory_root):
    """Damage one file of the metadata or data after the other: cut short, then gone."""
    filesystem, root = memory_root
    for path in sorted(path for path in filesystem.find(root) if is_damaged(path)):
        content = filesystem.cat_file(path)
        filesystem.pipe_file(path, content[: len(content) // 2])
        yield
        filesystem.rm_file(path)
        yield
        filesystem.pipe_file(path, content)


def test_damage_to_a_file_of_a_hostile_name_is_said_on_one_line(table, memory_root):
    failures = []
    with Lines("snapshot_explorer") as logged:
        for _ in damage(memory_root):
            for question in (
                lambda: open_table(f"memory://{memory_root[1]}").at("latest").to_arrow(),
                lambda: open_table(f"memory://{memory_root[1]}").history(),
                lambda: open_table(f"memory://{memory_root[1]}").lifetimes(),
            ):
                try:
                    question()
                except SnapshotExplorerError as error:
                    failures.append(error)

    assert len(failures) > 5
    for error in failures:
        assert str(error).isprintable()
        printed = "".join(traceback.format_exception(error))
        assert not RAW.search(printed), printed
        assert not forged(printed), printed
    assert not [line for line in logged.lines if "\n" in line or RAW.search(line)]


def test_a_log_line_of_the_snapshot_core_is_one_line(caplog):
    caplog.set_level("INFO", logger="snapshot_explorer")

    management_log.warning("%s of %s", ValueError(EVIL), 3)
    management_log.warning("%(a)s", {"a": EVIL})

    assert all(record.getMessage().isprintable() for record in caplog.records)
    assert caplog.records[0].getMessage().endswith(" of 3")


def test_a_line_of_code_for_a_hostile_table_runs(memory_root):
    from snapshot_explorer.jupyter.explorer import Explorer

    made = delta(memory_root)
    opened = open_table(made.url)
    explorer = Explorer(opened, name="t", variables={}).wait()
    explorer.state.columns = [EVIL]
    for tab in ("commit", "manifests", "compare", "data", "files", "health"):
        explorer.state.tab = tab
        explorer.wait()
        assert explorer.code.isprintable()
        eval(explorer.code, {"t": opened, "df": None})
        for text in explorer._repr_mimebundle_().values():
            assert not isinstance(text, str) or not RAW.search(text)
    explorer.close()


def test_errors_hold_numbers_and_files_as_they_are():
    assert SnapshotExplorerError("a\nb", 1).args == ("a\\nb", 1)
    assert str(SnapshotExplorerError("Zürich 東京 🙂")) == "Zürich 東京 🙂"
