"""A receiver that answers byte by byte."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress


@contextmanager
def trickling(head: bytes, rest: bytes) -> Generator[str]:
    """Listen; answer one request with `head`, and then with the bytes of `rest`, each of them soon and for ever."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(head)
            for byte in itertools.cycle(rest):
                connection.sendall(bytes([byte]))
                time.sleep(0.005)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join()
