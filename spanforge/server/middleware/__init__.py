"""What stands before every route: limits, ids, the log line."""
