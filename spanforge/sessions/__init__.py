"""How events become a summary: the fold, the table of open sessions, and sampling."""
