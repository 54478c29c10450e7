"""A session as a tree of spans, before any standard names them."""
