"""What the pages ask: a small database of figures, made from a store while it grows (adr/0310)."""

from spanforge.server.viewer.index.builder import Index, Progress

__all__ = ["Index", "Progress"]
