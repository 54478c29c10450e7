"""A LangChain chain over a vector store: `python langchain_app.py "Which letter?"`."""

import sys

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI

from spanforge import auto

auto.setup()

# In earnest: the embeddings of your provider.
store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
store.add_texts(["A letter about rain.", "A letter about snow."], ids=["letter-1", "letter-2"])

prompt = ChatPromptTemplate.from_template("{documents}\n\n{question}")
given = {"documents": store.as_retriever(search_kwargs={"k": 1}), "question": RunnablePassthrough()}
chain = given | prompt | ChatOpenAI(model="gpt-4o-mini", stream_usage=True)

for piece in chain.stream(sys.argv[1]):
    print(piece.text, end="")
