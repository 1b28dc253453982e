"""REST catalogs that are not trusted: their answers run no code, show no secret, and cost limited memory and time."""

import ast
import builtins
import gzip
import itertools
import json
import re
import select
import sys
import threading
from pathlib import Path

import pytest

from snapshot_explorer import Limits, open_table, samples
from snapshot_explorer.errors import LimitError, SnapshotExplorerError, StorageError, UnsupportedFeatureError
from snapshot_explorer.table import catalogs
from tests.support.outputs import shown_by
from tests.support.rest_catalogs import CONFIG, FILE, in_paimon, loaded, refused, served

FOLDER = samples.path("shipments")
HERE = f"{FOLDER}/metadata/{FILE}"
NAME = "shop.shipments"
CANARY = "canary-7f3a-" * 20
PIECE = 12
"""Characters of the secret of which no message has that many in a row."""
KEYS = {"s3.access-key-id": "AKIAVENDED", "s3.secret-access-key": CANARY, "s3.region": "us-east-1"}
LOGIN = {"token": "secret"}


def with_credential(uri):
    """Return options with which the client first requests a token."""
    return {"credential": "id:secret", "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}


def pyiceberg_keys():
    """Return every text in pyiceberg's source that may be the name of a property."""
    root = Path(pytest.importorskip("pyiceberg").__file__).parent
    texts = {
        node.value
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {text for text in texts if re.fullmatch(r"[a-z][a-z0-9_]*([.-][a-z0-9_]+)*\.?", text) and len(text) < 60}
    assert names >= {"py-io-impl", "auth", "auth.manager", "py-catalog-impl", "uri", "ssl", "oauth2-server-uri"}
    return [*sorted(names), "header.Authorization"]


@pytest.fixture
def canary(monkeypatch):
    """The names of modules that are imported and the arguments of calls, where an answer names them."""
    touched = []

    class Finder:
        def find_spec(self, name, *_):
            if name.startswith("canary_module"):
                touched.append(name)

    monkeypatch.setattr(builtins, "canary_call", lambda *args, **named: touched.append((args, named)), raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    return touched


@pytest.mark.parametrize("code", ["builtins.canary_call", "canary_module.Class"])
def test_no_property_of_a_server_makes_the_client_import_or_call_anything(canary, code):
    config, table = {}, loaded(HERE)
    with served(table, config) as (uri, requests):
        for key in pyiceberg_keys():
            as_object = {"type": "custom", "impl": code, "custom": {}, "client": code, "cabundle": code}
            config |= {"defaults": {key: code}, "overrides": {key: as_object}}
            table["config"] = {key: code}
            table["storage-credentials"] = [{"prefix": FOLDER, "config": {key: code}}]
            table["metadata"]["properties"] = {key: code}

            assert catalogs.locate(uri, NAME, LOGIN).path == HERE, key
            assert canary == [], key
            if key not in ("prefix", "namespace-separator"):
                assert requests[-2:] == [
                    ("/v1/config", "Bearer secret"),
                    ("/v1/namespaces/shop/tables/shipments?snapshots=refs", "Bearer secret"),
                ], key


def test_a_server_may_set_its_prefix_and_a_path_of_its_own_origin():
    config = {"defaults": {"prefix": "not/this"}, "overrides": {"prefix": "west"}}
    with served(loaded(HERE), config) as (uri, requests):
        config["overrides"]["uri"] = f"{uri}/iceberg/"
        assert open_table(NAME, catalog=uri).path == FOLDER

    assert requests[-1][0] == "/iceberg/v1/west/namespaces/shop/tables/shipments?snapshots=refs"


@pytest.mark.parametrize("is_kept", [False, True], ids=["closed", "closed-late"])
def test_a_redirect_is_followed(is_kept):
    content = json.dumps(loaded(HERE)).encode()
    moved = b"HTTP/1.1 307 Moved\r\nLocation: /moved/namespaces/shop/tables/shipments\r\nContent-Length: 6\r\n"
    answers = [
        moved + (b"" if is_kept else b"Connection: close\r\n") + b"\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content),
    ]

    def answer(output):
        output.write(answers.pop(0))
        if is_kept and answers:
            # The connection is closed when the next request has arrived, as by a server that has just given it up.
            select.select([output], [], [], 60)

    with served(answer) as (uri, requests):
        assert open_table(NAME, catalog=uri).path == FOLDER

    assert requests[-1][0] == "/moved/namespaces/shop/tables/shipments"


def test_a_redirect_to_another_server_is_not_followed_and_sends_nothing_there():
    with served(loaded(HERE), token={"access_token": "t", "token_type": "bearer"}) as (other, sent):
        elsewhere = (other, other.replace("127.0.0.1", "localhost"), other.replace("127.0.0.1", "127.0.0.2"))
        for status, where in zip((301, 302, 303, 307, 308), itertools.cycle((*elsewhere, other[5:])), strict=False):

            def moved(output, status=status, where=where):
                output.write(f"HTTP/1.1 {status} Moved\r\nLocation: {where}/a\r\nContent-Length: 0\r\n\r\n".encode())

            for answers in ({"table": moved}, {"config": moved}, {"token": moved}):
                with served(**{"table": loaded(HERE), "token": {}, **answers}) as (uri, _):
                    login = with_credential(uri) if "token" in answers else LOGIN
                    with pytest.raises(StorageError, match="it redirects to http.*is not followed") as caught:
                        open_table(NAME, catalog=uri, catalog_options=login)
                assert str(caught.value).endswith(
                    "give it as the catalog. Check the URI and catalog_options. If it is a Paimon REST catalog, "
                    "add format='paimon'."
                )

    assert sent == []


def test_a_connection_that_is_closed_twice_is_an_error():
    with served(lambda _: None) as (uri, requests), pytest.raises(StorageError, match="did not return the location"):
        open_table(NAME, catalog=uri)

    assert [path for path, _ in requests] == [
        "/v1/config",
        *["/v1/namespaces/shop/tables/shipments?snapshots=refs"] * 2,
    ]


def test_nothing_is_sent_to_another_host_that_a_server_names():
    with served(loaded(HERE)) as (other, sent):
        names = ("uri", "oauth2-server-uri", "s3.signer.uri", "s3.proxy-uri")
        config = {"defaults": dict.fromkeys(names, other), "overrides": dict.fromkeys(names, other)}
        with served(loaded(HERE), config, {"access_token": "t", "token_type": "bearer"}) as (uri, requests):
            open_table(NAME, catalog=uri, catalog_options=with_credential(uri))

    assert sent == []
    assert {path.partition("?")[0] for path, _ in requests} == {
        "/v1/oauth/tokens",
        "/v1/config",
        "/v1/namespaces/shop/tables/shipments",
    }


ENDPOINT = "https://elsewhere.example"
OWN = {"s3.access-key-id": "AKIAMINE", "s3.secret-access-key": "mine", "s3.session-token": "my-session"}
IN_S3 = loaded(f"s3://lake/shop/metadata/{FILE}")


def located(config, own=None, *, by_table=True):
    """Return what a client gets from a server that sends properties, with the user's own ones."""
    answer, defaults = (
        (IN_S3 | {"config": config}, CONFIG) if by_table else (IN_S3, {"defaults": {}, "overrides": config})
    )
    with served(answer, defaults) as (uri, _):
        return catalogs.locate(uri, NAME, LOGIN | (own or {})).storage_options


@pytest.mark.parametrize("by_table", [False, True])
@pytest.mark.parametrize("own", [{}, OWN, {"s3.profile-name": "work"}])
def test_the_users_keys_are_not_sent_to_an_endpoint_that_a_server_names(own, by_table):
    said = rf"names the endpoint {ENDPOINT} for the table's files, but returns no keys for it.*'s3.endpoint'"

    with pytest.raises(UnsupportedFeatureError, match=said):
        located({"s3.endpoint": ENDPOINT}, own, by_table=by_table)
    with pytest.raises(UnsupportedFeatureError, match=said):
        located({"s3.endpoint": ENDPOINT, "s3.access-key-id": "AKIAVENDED"}, own, by_table=by_table)


def test_with_keys_of_the_server_nothing_of_the_users_is_sent_to_its_endpoint():
    options = located(KEYS | {"s3.endpoint": ENDPOINT}, OWN)

    assert options["client_kwargs"] == {"endpoint_url": ENDPOINT, "region_name": "us-east-1"}
    assert (options["key"], options["secret"]) == ("AKIAVENDED", CANARY)
    assert "token" not in options
    assert located({"s3.endpoint": ENDPOINT, "s3.anonymous": "true"}, OWN).keys() == {"anon", "client_kwargs"}


@pytest.mark.parametrize("of_server", [ENDPOINT, "https://other.example"])
def test_an_endpoint_that_the_user_names_is_used_with_the_users_keys(of_server):
    options = located({"s3.endpoint": of_server}, OWN | {"s3.endpoint": ENDPOINT})

    assert options["client_kwargs"]["endpoint_url"] == ENDPOINT
    assert (options["key"], options["secret"], options["token"]) == tuple(OWN.values())


@pytest.mark.parametrize(
    "answer",
    [
        '{"overrides": {"py-io-impl": "builtins.canary_call"}, "defaults": {}, "x": NaN}',
        '[{"overrides": {}}]',
        "<html>login",
    ],
)
def test_an_answer_that_is_not_plain_json_is_refused(canary, answer):
    with served(loaded(HERE), answer) as (uri, _), pytest.raises(StorageError, match="its answer is not a JSON object"):
        open_table(NAME, catalog=uri)

    assert canary == []


def invalid(**members):
    return loaded(HERE) | members


@pytest.mark.parametrize(
    ("answer", "config", "token", "said"),
    [
        (invalid(metadata=1, config=KEYS), CONFIG, None, "answer is not valid: metadata: Input should be"),
        (invalid(metadata=1, config=CANARY), CONFIG, None, "answer is not valid: metadata: Input should be"),
        (
            invalid(**{"storage-credentials": [{"config": KEYS}]}),
            CONFIG,
            None,
            "storage-credentials.0.prefix: Field req",
        ),
        (invalid(**{"storage-credentials": [CANARY]}, metadata=1), CONFIG, None, "answer is not valid: metadata"),
        (refused(500, f"{CANARY} does not fit"), {"overrides": KEYS, "defaults": {}}, None, r"\*\*\* does not fit"),
        ((*refused(403, f"{CANARY} is locked"), "config", KEYS), CONFIG, None, r"\*\*\* is locked"),
        (loaded(HERE), {"overrides": [CANARY], "defaults": CANARY, "endpoints": 7}, None, "TypeError: "),
        (loaded(HERE), CONFIG, {"access_token": CANARY, "token_type": 3}, "answer is not valid: token_type: Input sh"),
        (loaded(HERE), refused(401, CANARY), {"access_token": CANARY, "token_type": "bearer"}, r"\*\*\*"),
        (loaded(f"/{CANARY}/latest", config=KEYS), CONFIG, None, r"names /\*\*\*/latest as the metadata file"),
    ],
)
def test_no_message_has_a_secret_that_the_catalog_returned(answer, config, token, said):
    if isinstance(answer, tuple) and len(answer) > 2:
        body, status, member, value = answer
        answer = (body | {member: value}, status)

    with served(answer, config, token) as (uri, _), pytest.raises(SnapshotExplorerError, match=said) as caught:
        open_table(NAME, catalog=uri, catalog_options=with_credential(uri) if token else None)

    assert isinstance(caught.value, StorageError | UnsupportedFeatureError)
    text = "".join(shown_by(caught.value))
    assert not any(CANARY[start : start + PIECE] in text for start in range(PIECE))
    assert "AKIAVENDED" not in text


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(CANARY),
        in_paimon("/x") | {"schema": CANARY},
        refused(500, CANARY),
        (f"<html>{CANARY}", 500),
        in_paimon("/x", {"type": CANARY}),
    ],
)
def test_no_message_has_what_a_paimon_catalog_returned(answer):
    pytest.importorskip("pypaimon_rust")
    config = {"defaults": {}, "overrides": {"fs.s3.secretKey": CANARY}}

    with served(answer, config) as (uri, _), pytest.raises(SnapshotExplorerError) as caught:
        open_table("shop.orders", catalog=uri, catalog_options=LOGIN | {"warehouse": "lake"}, format="paimon")

    text = "".join(shown_by(caught.value))
    assert not any(CANARY[start : start + PIECE] in text for start in range(PIECE))


def endless(output):
    """Write an answer without an end."""
    output.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"defaults": {}, "overrides": {"a": "')
    for _ in itertools.count():
        output.write(b"a" * 65536)


def bomb(output):
    """Write an answer that decompresses to a thousand times its size."""
    content = gzip.compress(json.dumps({"defaults": {"a": "a" * 50_000_000}, "overrides": {}}).encode())
    output.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(content))
    output.write(content)


@pytest.mark.parametrize("answer", [endless, bomb])
@pytest.mark.parametrize("which", ["config", "table", "token", "error"])
def test_the_size_of_an_answer_is_limited(answer, which):
    answers = {"config": CONFIG, "table": loaded(HERE), "token": {"access_token": "t", "token_type": "bearer"}}
    said = r"its answer has more than 1000000 bytes\..* limits=Limits\(value_bytes=2000000\)\)\."
    name = which.replace("error", "table")
    answers[name] = (lambda output: answer(Status(output))) if which == "error" else answer

    with served(**answers) as (uri, _), pytest.raises(LimitError, match=said):
        open_table(NAME, catalog=uri, catalog_options=with_credential(uri), limits=Limits(value_bytes=1_000_000))


class Status:
    """An output whose answer has the status 500."""

    def __init__(self, output):
        self._output = output

    def write(self, content):
        self._output.write(content.replace(b" 200 OK", b" 500 Oh", 1))


def test_an_answer_with_very_many_properties_is_refused():
    config = {"defaults": {f"p{number}": "x" * 100 for number in range(2000)}, "overrides": {}}

    with served(loaded(HERE), config) as (uri, _), pytest.raises(StorageError, match="more than 1000 properties"):
        open_table(NAME, catalog=uri)


@pytest.mark.parametrize("levels", [300, 900, 1_500, 20_000])
def test_an_answer_with_very_many_levels_is_refused_with_the_limit(levels):
    table = loaded(HERE) | {"unknown": "@"}
    content = json.dumps(table).replace('"@"', "[" * levels + "]" * levels).encode()
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(content)

    with served(lambda output: output.write(head + content)) as (uri, _), pytest.raises(LimitError) as caught:
        open_table(NAME, catalog=uri)

    assert re.search(r"its answer has values within each other to .* levels", str(caught.value))


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{"])
@pytest.mark.parametrize("table_format", ["iceberg", "paimon"])
def test_a_catalog_that_sends_its_answer_byte_by_byte_is_not_waited_for(monkeypatch, head, table_format):
    pytest.importorskip("pyiceberg" if table_format == "iceberg" else "pypaimon_rust")
    monkeypatch.setattr(catalogs, "MAX_SECONDS", 0.5)
    ended = threading.Event()

    def slowly(output):
        output.write(head)
        while not ended.wait(0.05):
            output.write(b" ")

    chosen = (
        {"format": "paimon", "catalog_options": {"token": "t", "warehouse": "w"}} if table_format == "paimon" else {}
    )
    with served(in_paimon("/x"), slowly) as (uri, _):
        with pytest.raises(StorageError, match="no answer within 0.5 seconds. Check the URI and the network"):
            open_table(NAME, catalog=uri, **chosen)
        ended.set()
