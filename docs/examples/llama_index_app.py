"""A LlamaIndex query engine whose answer streams: `python llama_index_app.py "Which letter?"`."""

import os
import sys

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.llms.openai import OpenAI

from spanforge import auto

auto.setup()

nodes = [TextNode(text="A letter about rain.", id_="letter-1"), TextNode(text="A letter about snow.", id_="letter-2")]
# In earnest: the embeddings of your provider.
index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=64))
model = OpenAI(model="gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"))
engine = index.as_query_engine(llm=model, similarity_top_k=1, streaming=True)

for word in engine.query(sys.argv[1]).response_gen:
    print(word, end="")
