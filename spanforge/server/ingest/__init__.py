"""From an upload to a job that reads it."""
