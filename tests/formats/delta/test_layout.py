"""Which names a log may hold, and what they mean."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.storage import Entry
from tests.inner.delta import log_files, staged_version

NUMBER = "00000000000000000010"


def entry(name, size=100, *, folder=False):
    return Entry(name=name, is_folder=folder, size_bytes=size, modified=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "kind", "form", "part", "parts", "until"),
    [
        (f"{NUMBER}.json", "commit", None, None, None, None),
        ("10.json", "commit", None, None, None, None),
        (f"{NUMBER}.crc", "checksum", None, None, None, None),
        (f"{NUMBER}.checkpoint.parquet", "checkpoint", "classic", None, None, None),
        (f"{NUMBER}.checkpoint.0000000002.0000000003.parquet", "checkpoint", "multi-part", 2, 3, None),
        (f"{NUMBER}.checkpoint.3a0d65cd.parquet", "checkpoint", "uuid", None, None, None),
        (f"{NUMBER}.checkpoint.3a0d65cd.json", "checkpoint", "uuid", None, None, None),
        (f"{NUMBER}.00000000000000000015.compacted.json", "compaction", None, None, None, 15),
    ],
)
def test_a_name_tells_what_a_file_is(name, kind, form, part, parts, until):
    (file,) = log_files([entry(name)])

    assert (file.kind, file.version, file.form) == (kind, 10, form)
    assert (file.part, file.parts, file.until) == (part, parts, until)
    assert file.path == f"_delta_log/{name}"
    assert file.modified_ms == 1_767_225_600_000


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        f".{NUMBER}.json.crc",
        f".{NUMBER}.json.3a0d.tmp",
        f"{NUMBER}.json.bak",
        f"{NUMBER}.checkpoint.json",
        f"{NUMBER}.checkpoint.1.2.json",
        f"{NUMBER}.4cb9708e.json",
        "-1.json",
        "\u0663.json",
        f"{2**63}.json",
        "",
    ],
)
def test_other_names_are_left_out(name):
    assert log_files([entry(name)]) == []


def test_a_checkpoint_without_bytes_and_a_folder_are_left_out_but_an_empty_commit_is_not():
    found = log_files(
        [entry(f"{NUMBER}.checkpoint.parquet", 0), entry("11.json", folder=True), entry(f"{NUMBER}.json", 0)]
    )

    assert [file.name for file in found] == [f"{NUMBER}.json"]


def test_files_come_by_version_not_by_name():
    assert [file.version for file in log_files([entry("10.json"), entry("9.json")])] == [9, 10]


@pytest.mark.parametrize(("name", "version"), [(f"{NUMBER}.3a0d-65cd.json", 10), (f"{NUMBER}.json", None), ("x", None)])
def test_staged_commits_have_a_name_of_their_own(name, version):
    assert staged_version(name) == version


@given(st.text(max_size=60))
def test_any_name_is_taken_or_left(name):
    assert len(log_files([entry(name)])) <= 1
