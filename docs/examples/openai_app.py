"""A question to OpenAI's client about documents found by hand: `python openai_app.py "Which letter?"`."""

import sys

from openai import OpenAI

from spanforge import auto
from spanforge.sdk import sf_rag

LETTERS = {"letter-1": "A letter about rain.", "letter-2": "A letter about snow."}

auto.setup()
client = OpenAI()


@auto.trace_rag
def search(query: str) -> list[dict[str, str]]:
    """Find letters that share a word with the question."""
    words = set(query.lower().split())
    return [{"id": name, "text": text} for name, text in LETTERS.items() if words & set(text.lower().split())]


def answer(question: str) -> None:
    """Print an answer as it comes."""
    with sf_rag.session(question):
        found = "\n".join(hit["text"] for hit in search(question))
        asked = [{"role": "user", "content": f"{found}\n\n{question}"}]
        usage = {"include_usage": True}
        for piece in client.chat.completions.create(
            model="gpt-4o-mini", messages=asked, stream=True, stream_options=usage
        ):
            print(piece.choices[0].delta.content or "" if piece.choices else "\n", end="")


answer(sys.argv[1])
