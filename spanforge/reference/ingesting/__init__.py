"""From files to passages in the index, as jobs (sub-contract 1 of the RAG contract)."""
