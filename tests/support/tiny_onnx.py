"""Tiny real models in ONNX form, with their tokenizers: a table of numbers a word, nothing learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

Table = Mapping[str, tuple[float, ...]]


def write_model(folder: Path, words: Table, *, pooled: bool) -> Path:
    """Write a model that gives each token its row, or, `pooled`, each text the mean of its rows."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {"[UNK]": 0, **{word: place for place, word in enumerate(words, 1)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106  a word, not a password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    width = len(next(iter(words.values())))
    rows = np.array([(0.0,) * width, *words.values()], dtype=np.float32)
    nodes = [helper.make_node("Gather", ["rows", "input_ids"], ["tokens"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMean", ["tokens"], ["out"], axes=[1], keepdims=0))
    result = helper.make_tensor_value_info("out" if pooled else "tokens", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [result],
        [numpy_helper.from_array(rows, "rows")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def write_cross_encoder(folder: Path, words: Table) -> Path:
    """Write a cross-encoder with the classes contradiction, entailment and neutral."""
    (write_model(folder, words, pooled=True) / "config.json").write_text(
        json.dumps({"id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}})
    )
    return folder
