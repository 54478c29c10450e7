from __future__ import annotations

import pytest

from spanforge.exceptions import ConfigError
from spanforge.sinks._endpoint import check_header, parse_endpoint, parse_headers


@pytest.mark.parametrize(
    ("value", "authority", "path"),
    [
        ("http://localhost:4318", "localhost:4318", ""),
        ("https://collector.example.com/otlp/", "collector.example.com:443", "/otlp"),
        ("http://[::1]:4318/a", "[::1]:4318", "/a"),
    ],
)
def test_http_urls_are_read(value: str, authority: str, path: str):
    endpoint = parse_endpoint(value, "endpoint")
    assert (endpoint.authority, endpoint.path) == (authority, path)


def test_a_default_port_stands_in_for_the_schemes_own():
    assert parse_endpoint("https://collector", "endpoint", default_port=4317).port == 4317


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("localhost:4318", "must begin with http"),
        ("file:///etc/hunter2", "must begin with http"),
        ("unix:/tmp/hunter2", "must begin with http"),
        ("http://user:hunter2@host", "give them as headers"),
        ("http://hunter2@host", "give them as headers"),
        ("http://host/?token=hunter2", "give keys and tokens as headers"),
        ("http://host/#hunter2", "give keys and tokens as headers"),
        ("http:///hunter2", "has no host"),
        ("http://host:99999/hunter2", "not a URL that can be read"),
        ("http://[hunter2", "not a URL that can be read"),
        ("http://host\n/hunter2", "must not contain"),
        ("http://host\\hunter2", "must not contain"),
        ("", "must begin with http"),
    ],
)
def test_anything_else_is_refused_with_the_remedy_and_without_the_value(value: str, remedy: str):
    with pytest.raises(ConfigError, match=remedy) as caught:
        parse_endpoint(value, "endpoint")
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_headers_are_read_as_opentelemetry_writes_them():
    assert parse_headers("Authorization=Bearer%20x, a=b=c,,", "headers") == {
        "authorization": "Bearer x",
        "a": "b=c",
    }


@pytest.mark.parametrize("value", ["hunter2", "na me=hunter2", "a=hunter2%0d%0ab", "=hunter2"])
def test_headers_that_no_request_may_have_are_refused_without_the_value(value: str):
    with pytest.raises(ConfigError) as caught:
        parse_headers(value, "headers")
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_a_header_is_checked_by_name_and_value():
    assert check_header("X-Key", "v", "headers") == "x-key"
    with pytest.raises(ConfigError):
        check_header("X-Key", "a\r\nb", "headers")
