"""A FastAPI application that streams its answers: `uvicorn fastapi_app:app`, then `GET /answer?question=Which`."""

from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI

from spanforge import auto
from spanforge.integrations.web import AsgiMiddleware
from spanforge.sdk import sf_rag

auto.setup()
client = AsyncOpenAI()
app = FastAPI()
# Takes up the session that a request's headers carry, and says who asks.
app.add_middleware(AsgiMiddleware, who=lambda scope: {"team_id": "mail", "path": scope["path"]})


async def words(question: str) -> AsyncIterator[str]:
    """Answer as the model does; the session ends with the last word, or where the reader leaves."""
    async with sf_rag.session(question):
        async with sf_rag.retrieval() as retrieval:
            retrieval.record([{"id": "letter-1", "score": 0.8, "text": "A letter about rain."}])
        asked = [{"role": "user", "content": f"A letter about rain.\n\n{question}"}]
        async for piece in await client.chat.completions.create(model="gpt-4o-mini", messages=asked, stream=True):
            yield piece.choices[0].delta.content or ""


@app.get("/answer")
async def answer(question: str) -> StreamingResponse:
    """Stream an answer."""
    return StreamingResponse(words(question), media_type="text/plain")
