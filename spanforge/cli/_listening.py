"""The socket that the verbs which serve pages listen on."""

from __future__ import annotations

import errno
import socket

from spanforge.cli._output import CliError


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; 0 takes a port that is free.

    Args:
        host: Name or address; an IPv6 address may stand in brackets.
        port: Port of TCP.

    Raises:
        CliError: The port is taken or not allowed, or this machine has no such address.
    """
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Connections take over protocol and options. Unless the protocol says TCP, asyncio leaves Nagle's algorithm on, and
    # each small answer on a kept connection waits for the other side's delayed acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    problem = ""
    try:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        # Whoever opens the printed address at once waits a moment, and is not turned away.
        listening.listen()
    except OSError as error:
        listening.close()
        problem = (
            "--port: this port is taken or not allowed; name another one, or 0 for any that is free"
            if error.errno in {errno.EADDRINUSE, errno.EACCES}
            else "--host: this machine has no such address; 127.0.0.1 is always there"
        )
    if problem:
        raise CliError(problem)
    return listening
