"""The same facts in other standards: pure functions, events in, plain data out, one table a standard."""
