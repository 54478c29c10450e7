"""A process that leaves three events in a spool and dies: run with the spool's folder as argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from zlib import crc32

from support.golden import Recorder, generated

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink
from spanforge.sinks.spool import Spool


class Down(BaseSink):
    """A receiver that is not there."""

    def write(self, _events: Sequence[Event], /) -> None:
        raise SinkWriteError("down")


if __name__ == "__main__":
    run = Recorder("left", offset=crc32(b"left") % 1000)
    Spool(Down(), sys.argv[1]).write([run.add(number, generated("left")) for number in range(3)])
    os._exit(0)
