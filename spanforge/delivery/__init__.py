"""How events leave the caller's thread: one shared log, one worker for each sink, and a ledger that always adds up."""
