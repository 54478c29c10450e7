"""Who asks: keys and tokens with real keys and a real key server, and what is wrong with each kind of wrong one."""

from __future__ import annotations

import base64
import json
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from support.api import Api, bearer, running
from support.loopback import answering

from spanforge.exceptions import ConfigError
from spanforge.reference import User
from spanforge.sdk import ServerSettings
from spanforge.server.auth import jwks
from spanforge.server.auth.identity import Authenticator
from spanforge.server.auth.jwks import key_set
from spanforge.server.auth.keys import KeyStore
from spanforge.server.auth.tokens import TokenVerifier
from spanforge.server.problems import Problem

ISSUER, AUDIENCE = "https://issuer.example", "spanforge"
RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
STRANGER = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def _public(algorithm: Any, key: Any, key_id: str) -> dict[str, Any]:
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig"}


JWKS = {
    "keys": [
        _public(RSAAlgorithm, RSA, "rsa"),
        _public(ECAlgorithm, EC, "ec"),
        _public(OKPAlgorithm, ED, "ed"),
        {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()},
        {"kty": "unheard of", "kid": "odd"},
    ]
}


class _KeyServer(ThreadingHTTPServer):
    daemon_threads = True
    document = json.dumps(JWKS).encode()
    status = 200
    asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/jwks"


class _Handler(BaseHTTPRequestHandler):
    server: _KeyServer

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(self.server.document)))
        self.end_headers()
        self.wfile.write(self.server.document)


def _serving() -> AbstractContextManager[_KeyServer]:
    return answering(_KeyServer(("127.0.0.1", 0), _Handler))


@pytest.fixture
def key_server() -> Iterator[_KeyServer]:
    with _serving() as server:
        yield server


def _settings(place: str, **more: Any) -> ServerSettings:
    return ServerSettings.load(
        {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_jwks": place, **more},
    )


def _verifier(place: str, **more: Any) -> TokenVerifier:
    settings = _settings(place, **more)
    return TokenVerifier(settings, key_set(settings.oidc_jwks))


def _token(key: Any = RSA, algorithm: str = "RS256", key_id: str | None = "rsa", **claims: Any) -> str:
    now = int(time.time())
    body = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now + 60,
        "sub": "ann",
        "org_id": "north",
        "roles": ["reader"],
        **claims,
    }
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.encode({k: v for k, v in body.items() if v is not None}, key, algorithm, headers=headers)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_is_its_users_until_it_is_revoked(api: Api) -> None:
    ann = User(user_id="ann", org_id="north", roles=frozenset({"reader"}), teams=frozenset({"tides"}))
    key = api.service.keys.add(ann)
    assert api.service.keys.find(key) == ann
    assert api.client.get("/api/rag/sources", headers=bearer(key)).status_code == 200
    elsewhere = KeyStore(api.home / "keys.sqlite")
    assert elsewhere.revoke(key.split("_")[1])
    assert not elsewhere.revoke(key.split("_")[1])
    assert [info.revoked is None for info in elsewhere.all()] == [False]
    elsewhere.close()
    refused = api.client.get("/api/rag/sources", headers=bearer(key))
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_keys_are_stored_as_digests_in_a_file_of_the_owners(tmp_path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    key = store.add(User())
    store.close()
    assert stat.S_IMODE((tmp_path / "keys.sqlite").stat().st_mode) == 0o600
    content = (tmp_path / "keys.sqlite").read_bytes()
    assert key.encode() not in content
    assert key.split("_", 2)[2].encode() not in content
    assert len(key.split("_", 2)[2]) == 43  # 256 bits


@pytest.mark.parametrize(
    "change", [lambda k: k[:-1], lambda k: k + "a", lambda k: k[:20] + "A" * 43, lambda k: k.upper()]
)
def test_what_is_nearly_a_key_is_none(tmp_path, change) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    assert store.find(change(store.add(User()))) is None
    assert store.find("sf_0123456789abcdef_" + "A" * 43) is None
    store.close()


@given(st.text(max_size=100))
def test_no_text_is_a_key(tmp_path, text: str) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    assert store.find(text) is None
    store.close()


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer sf_", "Bearer a b", "Bearer " + "x" * 9_000]
)
def test_odd_credentials_are_refused(api: Api, header: str) -> None:
    answer = api.client.get("/api/rag/sources", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_nothing_in_a_request_but_the_credential_says_who_asks(api: Api) -> None:
    headers = {**api.key("ann", "north"), "X-Org-Id": "south", "X-User": "bob", "X-Forwarded-User": "bob"}
    made = api.client.post("/api/rag/sources?org=south&user=bob", json={"name": "Notes"}, headers=headers)
    assert made.json()["owner"] == "ann"
    with api.service.tenants.use("north") as tenant:
        assert len(tenant.pipeline.catalog.sources("north")) == 1


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "algorithm", "key_id"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")]
)
def test_a_token_of_the_issuer_is_let_in(tmp_path, key_server, key, algorithm: str, key_id: str) -> None:
    with running(
        tmp_path, oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=key_server.url, oidc_teams_claim="groups.names"
    ) as api:
        headers = bearer(_token(key, algorithm, key_id, roles="editor auditor", groups={"names": ["tides", 7]}))
        made = api.source(headers, visibility="team", teams=["tides"])
        listed = api.client.get("/api/rag/sources", headers=headers).json()["sources"]
        assert [(one["id"], one["owner"]) for one in listed] == [(made, "ann")]
        assert api.client.get("/api/rag/sources", headers=api.key("bob")).json()["sources"] == []
    assert key_server.asked == 1


def _forged_none() -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    body = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60, "sub": "ann", "org_id": "north"}
    return f"{part({'alg': 'none', 'kid': 'rsa'})}.{part(body)}."


def _signed_with_the_public_key() -> str:
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    import hashlib
    import hmac

    head, body, _ = _token().split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "rsa"}).encode()).rstrip(b"=").decode()
    signature = hmac.new(public, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "token",
    [
        lambda: _token(exp=int(time.time()) - 60),
        lambda: _token(exp=None),
        lambda: _token(nbf=int(time.time()) + 600),
        lambda: _token(iss="https://other.example"),
        lambda: _token(iss=None),
        lambda: _token(aud="other"),
        lambda: _token(aud=None),
        lambda: _token(org_id=None),
        lambda: _token(org_id=""),
        lambda: _token(org_id=["north"]),
        lambda: _token(sub=None),
        lambda: _token(STRANGER),
        lambda: _token(STRANGER, key_id="stranger"),
        lambda: _token(key_id=None),
        lambda: _token(RSA, "PS256"),
        lambda: _token(RSA, "RS256", "ec"),
        lambda: _token(EC, "ES256", "rsa"),
        lambda: _token("s" * 32, "HS256", "shared"),
        _forged_none,
        _signed_with_the_public_key,
        lambda: _token()[:-4] + "AAAA",
        lambda: "a.b.c",
        lambda: "." * 50,
    ],
)
def test_other_tokens_are_not(key_server, token) -> None:
    assert _verifier(key_server.url).verify(token()) is None


def test_one_key_needs_no_id(tmp_path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [_public(RSAAlgorithm, RSA, "rsa")]}))
    found = _verifier(str(file)).verify(_token(key_id=None))
    assert found is not None
    assert found == User(user_id="ann", org_id="north", roles=frozenset({"reader"}))


@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda b: base64.urlsafe_b64encode(b).decode() + ".e30.AA"))
def test_no_text_is_a_token(tmp_path, text: str) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(JWKS))
    assert _verifier(str(file)).verify(text) is None


@pytest.mark.parametrize(
    "header",
    [
        '{"alg":"RS256","kid":[1]}',
        '{"alg":["RS256"]}',
        '{"alg":{}}',
        "[]",
        "1",
        "[" * 3_000,
        '{"alg":"RS256","crit":["b64"],"b64":false}',
    ],
)
def test_odd_headers_are_no_token(tmp_path, header: str) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(JWKS))
    text = base64.urlsafe_b64encode(header.encode()).rstrip(b"=").decode()
    assert _verifier(str(file)).verify(f"{text}.e30.AA") is None


def test_invented_key_ids_do_not_make_us_ask_the_issuer(key_server) -> None:
    verifier = _verifier(key_server.url)
    for number in range(20):
        assert verifier.verify(_token(STRANGER, key_id=f"invented-{number}")) is None
    assert verifier.verify(_token()) is not None
    assert key_server.asked == 1


def test_new_keys_are_found_and_old_ones_stay_while_the_issuer_is_away(key_server, monkeypatch) -> None:
    monkeypatch.setattr(jwks, "RETRY_S", -1.0)
    verifier = _verifier(key_server.url)
    assert verifier.verify(_token()) is not None
    fresh = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    assert verifier.verify(_token(fresh, key_id="fresh")) is None
    key_server.document = json.dumps({"keys": [*JWKS["keys"], _public(RSAAlgorithm, fresh, "fresh")]}).encode()
    assert verifier.verify(_token(fresh, key_id="fresh")) is not None
    key_server.status = 500
    assert verifier.verify(_token(STRANGER, key_id="other")) is None
    assert verifier.verify(_token()) is not None


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (500, b""),
        (200, b"{"),
        (200, b"[]"),
        (200, b'{"keys": 1}'),
        (200, b'{"keys": [1]}'),
        (302, b""),
        (200, b"[" * 99_999),
    ],
)
def test_an_issuer_that_cannot_be_read_is_503(tmp_path, key_server, status: int, document: bytes) -> None:
    key_server.status, key_server.document = status, document
    with running(tmp_path, oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_jwks=key_server.url) as api:
        answer = api.client.get("/api/rag/sources", headers=bearer(_token()))
        assert (answer.status_code, answer.json()["code"]) == (503, "IDENTITY_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert api.client.get("/api/rag/sources", headers=api.key()).status_code == 200


@pytest.mark.parametrize("place", ["http://issuer.example/jwks", "no-such-file.json"])
def test_keys_come_encrypted_or_from_a_file(place: str) -> None:
    with pytest.raises(ConfigError, match="oidc_jwks"):
        key_set(place)


@pytest.mark.parametrize(
    "settings", [{"oidc_issuer": ISSUER}, {"oidc_algorithms": ["HS256"]}, {"oidc_algorithms": "none"}]
)
def test_settings_that_would_let_anybody_in_are_refused(settings) -> None:
    with pytest.raises(ConfigError, match="oidc_"):
        ServerSettings.load(settings)


async def test_without_an_issuer_there_are_only_keys(tmp_path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    assert await Authenticator(store).judge(_token()) is None
    store.close()


def test_problem_of_the_issuer_is_raised_without_keys(key_server) -> None:
    key_server.status = 500
    with pytest.raises(Problem):
        _verifier(key_server.url).verify(_token())
