"""From a question to ordered passages (sub-contract 2 of the RAG contract)."""
