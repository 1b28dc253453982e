"""Which storage options are accepted, under which names."""

import pickle

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.storage import Storage, pickled_with_options
from tests.inner.storage import fsspec_options
from tests.support.outputs import shown_by

SECRET = "canary-51d7"


@pytest.mark.parametrize("upper", [True, False])
def test_a_table_opens_with_the_options_of_deltalake_and_polars(s3, upper):
    client, bucket, options = s3
    client.put_object(Bucket=bucket, Key="t/a", Body=b"x")
    names = {
        "AWS_ACCESS_KEY_ID": options["key"],
        "AWS_SECRET_ACCESS_KEY": options["secret"],
        "AWS_ENDPOINT_URL": options["endpoint_url"],
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }
    storage = Storage(f"s3://{bucket}/t", names if upper else {name.lower(): value for name, value in names.items()})

    assert storage.read("a") == b"x"
    assert pickle.loads(pickled_with_options(storage)).read("a") == b"x"


@pytest.mark.parametrize(
    ("protocol", "options", "passed"),
    [
        ("s3", {"access_key_id": "k", "token": "t"}, {"key": "k", "token": "t"}),
        ("s3", {"AWS_SKIP_SIGNATURE": "true"}, {"anon": True}),
        ("s3", {"AWS_SKIP_SIGNATURE": "false"}, {}),
        ("s3", {"aws_profile": "prod"}, {"profile": "prod"}),
        (
            "s3",
            {"region": "eu-west-1", "client_kwargs": {"verify": False}},
            {"client_kwargs": {"region_name": "eu-west-1", "verify": False}},
        ),
        (
            "s3",
            {"aws_virtual_hosted_style_request": "true"},
            {"config_kwargs": {"s3": {"addressing_style": "virtual"}}},
        ),
        ("s3", {"requester_pays": True, "profile": "p"}, {"requester_pays": True, "profile": "p"}),
        ("memory", {"any": 1}, {"any": 1}),
    ],
)
def test_names_of_object_store_set_the_options_of_fsspec(protocol, options, passed):
    assert fsspec_options(protocol, options) == passed


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        (
            {"AZURE_STORAGE_ACCOUNT_NAME": "a", "azure_storage_account_key": "k"},
            {"account_name": "a", "account_key": "k"},
        ),
        ({"account_name": "a", "access_key": "k"}, {"account_name": "a", "account_key": "k"}),
        ({"azure_storage_sas_key": "?sv=1"}, {"sas_token": "?sv=1"}),
        (
            {"azure_client_id": "c", "azure_client_secret": "s", "azure_tenant_id": "t"},
            {"client_id": "c", "client_secret": "s", "tenant_id": "t"},
        ),
        (
            {"account_name": "a", "account_key": "k", "azure_endpoint": "http://127.0.0.1:1/a/"},
            {
                "account_name": "a",
                "account_key": "k",
                "connection_string": "BlobEndpoint=http://127.0.0.1:1/a;AccountName=a;AccountKey=k",
            },
        ),
        ({"exclude_cli_credential": True}, {"exclude_cli_credential": True}),
    ],
)
def test_names_of_object_store_work_for_azure(options, passed):
    pytest.importorskip("adlfs")

    assert fsspec_options("abfs", options) == passed
    assert fsspec_options("abfs", passed) == passed  # an executor gets those


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ({"GOOGLE_SERVICE_ACCOUNT": __file__}, {"token": __file__}),
        ({"google_application_credentials": __file__}, {"token": __file__}),
        ({"service_account_key": '{"type": "service_account"}'}, {"token": {"type": "service_account"}}),
        ({"google_skip_signature": "true"}, {"token": "anon"}),
        ({"token": "anon", "endpoint_url": "http://h"}, {"token": "anon", "endpoint_url": "http://h"}),
    ],
)
def test_names_of_object_store_work_for_google(options, passed):
    pytest.importorskip("gcsfs")

    assert fsspec_options("gs", options) == passed


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("acess_key_id", r"Did you mean access_key_id\?"),
        ("AWS_SECRET_ACCES_KEY", r"Did you mean aws_secret_access_key\?"),
        ("endpoint_uri", r"Did you mean endpoint_url\?"),
        ("max_retries", "Known are key"),  # not max_paths, which all file systems have
        ("color", "Known are key, secret, token, profile, endpoint_url, anon, and more."),
    ],
)
def test_an_unknown_option_is_refused_by_its_name_with_the_nearest(name, advice):
    with pytest.raises(InvalidArgumentError, match=rf"^s3:// has no storage option {name}\. {advice}") as caught:
        open_table("s3://lake/t", storage_options={name: SECRET})

    assert not [text for text in shown_by(caught.value) if SECRET in text]


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(InvalidArgumentError, match="^Two storage options set key to different values") as caught:
        Storage("s3://lake/t", {"key": SECRET, "AWS_ACCESS_KEY_ID": "b"})

    assert not [text for text in shown_by(caught.value) if SECRET in text]


@pytest.mark.parametrize("name", ["google_service_account", "google_application_credentials"])
def test_a_key_file_that_does_not_exist_is_not_sent_as_a_token(name):
    pytest.importorskip("gcsfs")

    with pytest.raises(InvalidArgumentError, match=f"{name} must be the path of a file that exists") as caught:
        Storage("gs://lake/t", {name.upper(): f"/keys/{SECRET}.json"})

    assert not [text for text in shown_by(caught.value) if SECRET in text]


def test_a_key_that_is_not_json_is_refused_without_being_shown():
    pytest.importorskip("gcsfs")

    with pytest.raises(InvalidArgumentError, match="google_service_account_key must be the JSON text") as caught:
        Storage("gs://lake/t", {"google_service_account_key": f"{{{SECRET}"})

    assert not [text for text in shown_by(caught.value) if SECRET in text]


PEM = {"type": "service_account", "client_email": "a@b.c", "token_uri": "https://x", "private_key": SECRET}
WRONG = [
    ("s3", {"key": 5, "secret": SECRET}, "The storage option key must be a string, got int."),
    ("s3", {"key": "", "secret": SECRET}, "key is empty. Leave it out, or check where its value comes from."),
    ("s3", {"secret": SECRET}, "The storage options have secret, but not key. Pass both."),
    ("s3", {"client_kwargs": SECRET}, "The storage option client_kwargs must be a dict, got str."),
    ("s3", {"client_kwargs": {"region_name": 7}}, "region_name in client_kwargs must be a string, got int."),
    ("s3", {"client_kwargs": {"endpont_url": SECRET}}, "has no option endpont_url. Did you mean endpoint_url?"),
    ("s3", {"client_kwargs": {SECRET: 1}}, "client_kwargs of s3:// contains an unknown option. Known are api_version"),
    ("s3", {"AWS_ENDPOINT_URL": SECRET}, "endpoint_url must be a URL that begins with http:// or https://."),
    ("s3", {"endpoint_url": "http://host:1 x"}, "endpoint_url must be a URL that begins with http:// or https://"),
    ("gs", {"token": "anon", "endpoint_url": "127.0.0.1:9"}, "endpoint_url must be a URL that begins with"),
    ("gs", {"token": {"refresh_token": SECRET}}, "token lacks client_id, client_secret of a user's credentials."),
    ("gs", {"token": PEM | {"client_email": ""}}, "token lacks client_email of a service account's key."),
    ("gs", {"token": PEM}, "token has a private_key that is not one in PEM"),
    ("gs", {"token": PEM | {"private_key": f"-----BEGIN KEY-----\n{SECRET}"}}, "that is not one in PEM"),
    (
        "gs",
        {"token": PEM | {"private_key": f"-----BEGIN KEY-----\\n{SECRET}\\n-----END KEY-----\\n"}},
        "whose breaks are not the two letters \\n.",
    ),
    ("gs", {"token": {"type": "external_account", "secret": SECRET}}, "has credentials of the type external_account"),
    ("gs", {"token": [SECRET]}, "token must be a path, a token or a dict, got list."),
    ("gs", {"token": ""}, "token is empty."),
    ("gs", {"token": f"/{SECRET}.json"}, "token names a file that does not exist."),
    ("gs", {"token": __file__}, "token names a file that is not the JSON of a key."),
    ("abfs", {"connection_string": 7}, "connection_string must be a string, got int."),
    ("abfs", {"account_name": "a", "account_key": SECRET}, "account_key is not a key in base64"),
    ("abfs", {"account_name": "a", "account_key": f"{SECRET}ä"}, "account_key is not a key in base64"),
    ("abfs", {"account_key": "Q0Y=", "azure_endpoint": SECRET}, "azure_endpoint must be a URL that begins with"),
    ("abfs", {"account_key": "Q0Y=", "timeout": f"{SECRET}s"}, "timeout must be a number such as 30, got str."),
    ("http", {"hedaers": SECRET}, "http:// has no storage option hedaers. Did you mean headers?"),
    ("http", {"client_kwargs": {"headers": SECRET}}, "headers in client_kwargs must be a dict, got str."),
    ("hdfs", {"usr": SECRET}, "hdfs:// has no storage option usr. Did you mean user?"),
    ("webhdfs", {"usr": SECRET}, "webhdfs:// has no storage option usr. Did you mean user?"),
]


@pytest.mark.parametrize(("protocol", "options", "message"), WRONG)
def test_a_value_that_cannot_be_right_is_refused_by_the_name_of_its_option(protocol, options, message):
    with pytest.raises(InvalidArgumentError) as error:
        Storage(f"{protocol}://host/t", options)

    assert message in str(error.value)
    assert SECRET not in "".join(shown_by(error.value))


CANARY = "Canary0SECRETvalue1234=="
EVERY = {
    "s3://b/t": ("key", "secret", "token", "profile", "AWS_ACCESS_KEY_ID", "aws_secret_access_key", "session_token"),
    "abfs://c@a.dfs.core.windows.net/t": (
        *("account_key", "sas_token", "connection_string", "client_secret", "tenant_id", "azure_storage_sas_key"),
        *("AZURE_STORAGE_ACCOUNT_KEY", "azure_endpoint"),
    ),
    "gs://b/t": ("token", "google_service_account_key", "GOOGLE_SERVICE_ACCOUNT", "endpoint_url", "project"),
    "https://host/t": ("headers", "auth", "client_kwargs", "cookies"),
    "memory://t": ("anything", "password"),
}
SHAPES = (
    str,
    lambda text: {"a": text},
    lambda text: [text, ("x", text)],
    lambda text: f"http://user:{text}@host",
    lambda text: text.encode(),
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("url", "name"), [(url, name) for url, names in EVERY.items() for name in names])
def test_no_option_of_any_storage_is_shown_whatever_it_contains(url, name, shape):
    texts = []
    for options in ({name: shape(CANARY)}, {name: shape(CANARY), "sceret": shape(CANARY)}):
        try:
            storage = Storage(url, options)
        except SnapshotExplorerError as error:
            texts += shown_by(error)
        else:
            texts += [repr(storage), pickle.dumps(storage).decode("latin-1"), *map(repr, vars(storage).values())]

    assert [text for text in texts if "0SECRETvalue" in text] == []
    assert texts
