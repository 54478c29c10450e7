"""Sends golden sessions to a receiver, or asks it what it made of them. Runs beside the receiver, prints JSON.

receiver_client.py send URL PROTOCOL HEADERS VARIANT...
receiver_client.py get URL
receiver_client.py post URL BODY
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from support.golden import VARIANTS

from spanforge.sinks.otlp import OtlpSink


def send(url: str, protocol: str, headers: str, *variants: str) -> Any:
    # A receiver that has just started may be slow with its first request.
    sink = OtlpSink(url, protocol=protocol, headers=json.loads(headers), timeout_s=60)
    receipts = [sink.write(VARIANTS[variant]()) for variant in variants]
    sink.close()
    return {"settled": [receipt is None for receipt in receipts], "lost": dict(sink.side_losses)}


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  the test gives the URL
        return json.load(answer)


def post(url: str, body: str) -> Any:
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})  # noqa: S310  likewise
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  likewise
        return json.load(answer)


if __name__ == "__main__":
    action = {"send": send, "get": get, "post": post}[sys.argv[1]]
    sys.stdout.write(json.dumps(action(*sys.argv[2:])))
