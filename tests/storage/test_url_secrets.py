"""Which parts of a URL are shown, in any text and however it is mistyped."""

import pytest

from snapshot_explorer import find_tables, open_lake, open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.inner.core import hide_typed_secrets, hide_url_secrets
from tests.inner.storage import parse_location

IN_ANY_TEXT = [
    "https://bob:CANARY@host/t",
    "https://CANARY@host/t",
    " https://bob:CANARY@127.0.0.1:9/t",
    "https:/bob:CANARY@127.0.0.1:9/t",
    "https:bob:CANARY@127.0.0.1:9/t",
    "https//bob:CANARY@host/t",
    "https;//bob:CANARY@host",
    "https ://bob:CANARY@host",
    "HTTPS:\\\\bob:CANARY@host",
    "https:\\/\\/bob:CANARY@host\\/t",
    "https://bob:CAN/CANARY@host/t",
    "https://bob:CAN?CANARY@host/t",
    "https://bob:CAN#CANARY@host/t",
    "https://bob:CAN@CANARY@host/t",
    "https://bob:CANARY@[::1]:9/t",
    "https://host/t?CANARY",
    "https://host/t?x=1&Sig=CANARY",
    "https://host/t?SIG=CANARY",
    "https://host/t;sig=CANARY",
    "https://host/t;CANARY",
    "https://host/t#CANARY",
    "https://host/t#access_token=CANARY",
    "https://host/t%3Fsig=CANARY",
    "s3://bucket/t?X-Amz-Signature=CANARY",
    "s3://bucket/t;sig=CANARY",
    "s3://bucket/t#Token=CANARY",
    "s3://KEY:CANARY@bucket/t",
    "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=CANARY",
    "abfs://user:CANARY@account/t",
    "sftp://user:p@CANARY@host/t",
    "part.parquet?X-Amz-Signature=CANARY",
    "part.parquet?a=1&amp;sig=CANARY",
    "https%3A%2F%2Fbob%3ACANARY%40host%2Ft",
    "https%253A%252F%252Fhost%252Ft%253Fsig%253DCANARY",
    "jdbc:postgresql://user:CANARY@host/db",
    "jdbc:sqlserver://host;user=x;password=CANARY",
    "simplecache::https://user:CANARY@host/t",
    'see "https://host/f?sig=CANARY", or another',
    '{"path":"https:\\/\\/host\\/f?sig=CANARY"}',
    '{"path":"https://host/f\\u003fsig\\u003dCANARY"}',
]
TYPED = (
    "bob:CANARY@127.0.0.1:9/t",
    "//bob:CANARY@host/t",
    "'https://bob:CANARY@host/t'",
    "dbfs:/bob:CANARY@host",
    "s3://bucket/t?CANARY",
    "s3://bucket/t#x=CANARY",
    "s3://bucket/t;x=CANARY",
    "127.0.0.1:9/t?sig=CANARY",
    "\thttps://bob:CANARY@host/t\n",
    "https://bob:CAN ARY CANARY@host/t",
    "https://bob:CANARY@host/t\0",
)
KEPT = [
    "s3://bucket/what?/t",
    "s3://bucket/what?/day=1/f.parquet",
    "s3://bucket/a#b/t",
    "s3://bucket/a;b/f",
    "s3://bucket/q=a%3Fb%3Dc/tag=%231/f.parquet",
    "s3://bucket/user=a@b.c/f.parquet",
    "s3://bucket/t=12:00/user@x",
    "https://host:8080/a/b@c",
    "http://localhost:9000/user@mail.com/t",
    "abfss://container@account.dfs.core.windows.net/t",
    "hdfs:///warehouse/t",
    "file:/data/t?a=1",
    "/data/t?a=1",
    "day=1/token=abc/f.parquet",
    "key=a;b=c",
    "serviceAccount:x@y.iam",
    "mailto:joe@x.de",
    "branch:audit@2026",
    "12:00@x",
    "orders@17",
    '{"user":"a@b.com","op":"x:y"}',
    "C:/Users/x@y",
    "at https://host/t; see a@b",
    "select * from t where a = '?' and b = ';'",
]


def shown_location(location):
    try:
        return parse_location(location).shown
    except SnapshotExplorerError as error:
        return str(error)


def is_local(location):
    try:
        return parse_location(location).protocol == "file"
    except SnapshotExplorerError:
        return True


@pytest.mark.parametrize("text", IN_ANY_TEXT)
def test_a_secret_of_a_url_is_hidden_in_any_text(text):
    shown = hide_url_secrets(text)

    assert "CANARY" not in shown
    assert hide_url_secrets(shown) == shown
    assert "CANARY" not in str(SnapshotExplorerError(f"Could not read {text}"))


@pytest.mark.parametrize("location", [*IN_ANY_TEXT, *TYPED])
def test_a_secret_of_a_mistyped_location_is_not_shown(location):
    assert "CANARY" not in shown_location(location)
    if is_local(location):
        for opened in (open_table, find_tables, open_lake):
            with pytest.raises(SnapshotExplorerError) as caught:
                opened(location)
            assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("text", KEPT)
def test_a_text_without_secrets_is_kept(text):
    assert hide_url_secrets(text) == text


@pytest.mark.parametrize("part", ["https:" + "\\" * 50, "https:/" * 8, "?" + "a" * 50, "%3A%2F" * 9, "x:y@", "&token="])
def test_the_time_for_a_long_text_grows_with_its_length(part):
    hide_url_secrets(part * 5_000)
    hide_typed_secrets(part * 5_000)


def test_an_existing_folder_is_shown_as_it_is(tmp_path):
    folder = tmp_path / "a:b@c"
    folder.mkdir()

    assert parse_location(folder).shown == str(folder)
    assert parse_location(f"{folder}x").shown == f"{tmp_path}/cx"
