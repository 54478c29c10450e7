"""A Haystack pipeline: `python haystack_app.py "Which letter?"`."""

import os
import sys

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from spanforge import auto

auto.setup()

store = InMemoryDocumentStore()
store.write_documents([Document(id="letter-1", content="About rain."), Document(id="letter-2", content="About snow.")])

pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
template = [ChatMessage.from_user("{{documents}} {{question}}")]
pipeline.add_component("prompt", ChatPromptBuilder(template=template, required_variables="*"))
model = OpenAIChatGenerator(model="gpt-4o-mini", api_base_url=os.environ.get("OPENAI_BASE_URL"))
pipeline.add_component("model", model)
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "model.messages")

question = sys.argv[1]
answer = pipeline.run({"retriever": {"query": question}, "prompt": {"question": question}})
print(answer["model"]["replies"][0].text)
