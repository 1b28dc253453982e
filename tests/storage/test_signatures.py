"""Signed requests to S3, Azure and Google, against the signatures of their own libraries."""

import datetime as dt
import json
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from snapshot_explorer.storage import signatures
from tests.inner.storage import Message

NOW = dt.datetime(2026, 11, 28, 9, 30, tzinfo=dt.UTC)
KEYS = ["a", "a b/c+d", "ä/ö.parquet", "a=1/b:2/c,d;e@f", "~(x)*'!", "a%20b", "a//b", "/a/./b", "x" * 900]
QUERIES = [
    {},
    {"list-type": "2", "prefix": "a b/ä+", "delimiter": "/"},
    {"continuation-token": "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=", "empty": ""},
]


class Clock(dt.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(signatures, "datetime", Clock)


@pytest.mark.parametrize("token", [None, "session/token=="])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_request_to_s3_is_signed_as_botocore_signs_it(method, token, monkeypatch):
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setattr(auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None), raising=False)
    credentials = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "secret/+key", "token": token}
    sign = signatures.s3_signature(credentials, "eu-west-1")
    for key in KEYS:
        for query in QUERIES:
            path = f"/lake/{quote(key, safe='/-_.~')}"
            message = Message(method, "127.0.0.1:9000", path, query, {"range": "bytes=0-9"})

            headers = sign(message)

            request = AWSRequest(method, f"http://127.0.0.1:9000{message.target}", {"range": "bytes=0-9"})
            signer = auth.S3SigV4Auth(Credentials("AKIAEXAMPLE", "secret/+key", token), "s3", "eu-west-1")
            request.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
            request.context["payload_signing_enabled"] = True
            request.headers["X-Amz-Date"] = request.context["timestamp"]
            request.headers["X-Amz-Content-SHA256"] = signatures._NO_CONTENT
            if token:
                request.headers["X-Amz-Security-Token"] = token
            text = signer.string_to_sign(request, signer.canonical_request(request))
            assert headers["Authorization"].endswith(f"Signature={signer.signature(text, request)}"), (key, query)


def test_a_key_is_derived_for_each_day_anew(monkeypatch):
    sign = signatures.s3_signature({"access_key_id": "A", "secret_access_key": "s", "token": None}, "us-east-1")
    message = Message("GET", "h", "/b/k", {}, {})
    first = sign(message)["Authorization"]
    monkeypatch.setattr(Clock, "now", classmethod(lambda cls, tz=None: NOW + dt.timedelta(days=1)))

    second = sign(message)["Authorization"]

    assert "20261128/us-east-1" in first
    assert "20261129/us-east-1" in second
    assert first[-64:] != second[-64:]


def test_a_request_to_azure_is_signed_as_azures_library_signs_it():
    authentication = pytest.importorskip("azure.storage.blob._shared.authentication")
    account, key = "account", "Y2FuYXJ5LWtleQ=="
    query = {"restype": "container", "comp": "list", "prefix": "a b", "marker": "2!72!=="}
    policy = authentication.SharedKeyCredentialPolicy(account, key)
    for path in ("/lake", "/lake/a%20b/c", "/account/lake/x"):
        signed = signatures.azure_signature(account, key)(Message("GET", "h", path, query, {}))

        own = {name: value for name, value in signed.items() if name != "Authorization"}
        request = SimpleNamespace(headers=own, query=query)
        request.http_request = request
        text = "GET" + "\n" * 12 + policy._get_canonicalized_headers(request)
        text += f"/{account}{path}" + policy._get_canonicalized_resource_query(request)
        assert signed["Authorization"] == f"SharedKey {account}:{authentication.sign_string(key, text)}"


def test_a_request_to_google_has_a_token_that_the_key_signed(monkeypatch):
    pytest.importorskip("google.auth")
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization
    from google.auth import jwt

    private = rsa.generate_private_key(65537, 2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    key = {"client_email": "me@x.example", "private_key_id": "1", "private_key": pem.decode()}
    sign = signatures.google_signature(json.loads(json.dumps(key)))
    message = Message("GET", "storage.googleapis.com", "/lake/a", {}, {"range": "bytes=0-1"})

    first = sign(message)

    assert sign(message) == first
    assert first["range"] == "bytes=0-1"
    claims = jwt.decode(first["Authorization"].removeprefix("Bearer "), certs=public, verify=False)
    assert claims["iss"] == claims["sub"] == "me@x.example"
    assert claims["scope"].endswith("devstorage.read_only")
    assert claims["exp"] - claims["iat"] == 3600
