"""A question to Anthropic's client, with a tag for who asks: `python anthropic_app.py "Which letter?"`."""

import sys

from anthropic import Anthropic

from spanforge import auto
from spanforge.sdk import sf_rag

auto.setup()

with sf_rag.bind(team_id="mail"), sf_rag.session(sys.argv[1]) as session:
    with session.retrieval() as retrieval:
        retrieval.record([{"id": "letter-1", "score": 0.8, "text": "A letter about rain."}])
    asked = [{"role": "user", "content": f"A letter about rain.\n\n{sys.argv[1]}"}]
    with Anthropic().messages.stream(model="claude-haiku-4-5", max_tokens=100, messages=asked) as stream:
        for text in stream.text_stream:
            print(text, end="")
