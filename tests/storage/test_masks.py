"""A known secret is found however a server or a library spells it."""

import base64
import html
import json
import textwrap
from urllib.parse import quote, quote_plus

import pytest

from tests.inner.storage import Mask

SECRETS = (
    "canary secret/+=2b6c",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "p@ss",
    "a\"b'c\\d&e<f>",
    "naïve-sécret-7",
    "x&y;z=1%41",
)


def broken(text, end="\n", width=5):
    return end.join(textwrap.wrap(text, width, drop_whitespace=False))


SPELLINGS = {
    "as it is": str,
    "in capitals": str.upper,
    "in small letters": str.lower,
    "escaped for XML": html.escape,
    "as decimal references": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "as hexadecimal references": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "escaped for JSON": lambda text: json.dumps(text)[1:-1],
    "with escaped slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "as escapes of JSON": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "as repr": lambda text: repr(text)[1:-1],
    "quoted": lambda text: quote(text, safe=""),
    "quoted for a form": quote_plus,
    "quoted twice": lambda text: quote(quote(text, safe=""), safe=""),
    "quoted with small digits": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 after a user": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "in base64 within other text": lambda text: base64.b64encode(f"ab{text}tail".encode()).decode(),
    "in base64 of URLs": lambda text: base64.urlsafe_b64encode(f"?>é{text}".encode()).decode(),
    "in lines of base64": lambda text: broken(base64.b64encode(text.encode()).decode(), "\n", 6),
    "in hexadecimal digits": lambda text: text.encode().hex(),
    "in capital digits": lambda text: text.encode().hex(":").upper(),
    "over lines": broken,
    "over indented lines": lambda text: broken(text, "\r\n   "),
    "over lines in JSON": lambda text: json.dumps(broken(text))[1:-1],
    "over lines with equals signs": lambda text: broken(text, "=\r\n"),
    "over lines with backslashes": lambda text: broken(text, "\\\n"),
    "as JSON in XML": lambda text: html.escape(json.dumps(text)[1:-1]),
    "quoted in XML": lambda text: html.escape(quote(text)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_however_it_is_spelled(secret, spelling):
    mask = Mask({"kwargs": [{"key": secret}]}, ())
    text = f"The key <{SPELLINGS[spelling](secret)}> is wrong"

    assert mask.has_secret(text)
    assert mask(text) == "The key <***> is wrong"


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("http://admin:canary-pass@host:9000/", "canary-pass"),
        ("https://host/t?sv=1&sig=canary%2Fsig", "canary/sig"),
        ("AccountName=a;AccountKey=canary/key==;BlobEndpoint=http://h", "canary/key=="),
        ("?sv=2024&se=2026&sig=canary%2Bsig%3D", "canary+sig="),
        ("Bearer canary-token", "canary-token"),
        ('{"client_email": "a@b", "private_key": "canary-pem"}', "canary-pem"),
        ("-----BEGIN KEY-----\nMIIcanary1line\nMIIcanary2line\n-----END KEY-----\n", "MIIcanary2line"),
        (b"canary-bytes", "canary-bytes"),
        (123456, "123456"),
        ({"nested": ["x", ("canary-item",)]}, "canary-item"),
        (type("Credential", (), {"__init__": lambda self: vars(self).update(token="canary-held")})(), "canary-held"),
    ],
)
def test_a_part_of_an_option_is_masked_alone(option, part):
    assert Mask({"option": option}, ())(f"got {part}, not valid") == "got ***, not valid"


def test_an_ordinary_text_is_kept():
    text = "Could not read orders: AccessDenied (403)\nin us-east-1 & elsewhere, 100% sure: a+b = c\\d"

    assert Mask({"key": "AKIA-1234567", "anon": True, "timeout": 30}, ())(text) == text


def test_a_password_of_a_proxy_in_the_environment_is_masked(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:canary-proxy@proxy:3128")

    assert Mask({}, ())("407 from me:canary-proxy@proxy") == "407 from ***@proxy"


def test_a_very_long_text_is_cut_where_no_secret_begins():
    mask = Mask({"key": "canary" * 10}, ())

    assert mask.has_secret("x" * 1_000_000)
    assert set(mask("x" * (2**16 - 30) + "canary" * 10)) == {"x"}
