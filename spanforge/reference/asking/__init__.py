"""From a question to a result: the stages of one run, their recoveries, and what may be said with the question."""
