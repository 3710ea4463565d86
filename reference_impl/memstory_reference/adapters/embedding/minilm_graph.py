"""all-MiniLM-L6-v2 as an ONNX graph over its published tensors: BERT, mean pooling and length 1, without torch.

Six layers, 384 wide, 12 heads (the model's `config.json`). The operators of `com.microsoft` are onnxruntime's fused
ones, https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md; they cost half of the plain ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

LAYERS = 6
WIDTH = 384
HEADS = 12
EPSILON = 1e-12
FLOAT = int(TensorProto.FLOAT)

Array = NDArray[np.generic]
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the tensors of a safetensors file as views of a memory map.

    The format: 8 bytes length, a JSON header, then the data (https://github.com/huggingface/safetensors#format).
    """
    data = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8:start]))
    header.pop("__metadata__", None)
    tensors = {}
    for name, facts in header.items():
        first, last = facts["data_offsets"]
        tensors[name] = data[start + first : start + last].view(_DTYPES[facts["dtype"]]).reshape(facts["shape"])
    return tensors


@dataclass(slots=True)
class Graph:
    """A graph under construction; `weights` are handed to onnxruntime beside the model, not copied into it."""

    tensors: dict[str, Array]
    nodes: list[NodeProto] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    constants: list[TensorProto] = field(default_factory=list)

    def add(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def add_contrib(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        return self.add(operator, inputs, output, "com.microsoft", **attributes)

    def weight(self, name: str) -> str:
        """Use a tensor as it is."""
        return self.add_weight(name, self.tensors[name])

    def matrix(self, name: str) -> str:
        """Use a tensor of a linear layer: torch stores (out, in), MatMul wants (in, out)."""
        return self.add_weight(name, self.tensors[name].T)

    def add_weight(self, name: str, value: Array) -> str:
        # onnxruntime reads the bare memory; this copies only what does not lie in order.
        self.weights[name] = np.ascontiguousarray(value)
        return name

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name


def build(path: Path) -> tuple[ModelProto, dict[str, Array]]:
    """Return the model and its weights: `ids` (n, tokens) and `lengths` (n), int32, to `vectors` (n, 384).

    Rows are padded on the right with anything; `lengths` counts the tokens before the padding.
    """
    graph = Graph(read_tensors(path))
    hidden = _embeddings(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, hidden, f"encoder.layer.{layer}")
    graph.add("Identity", [hidden], "hidden")
    _pool(graph)
    return _model(graph), graph.weights


def _embeddings(graph: Graph) -> str:
    prefix = "embeddings"
    graph.add("Sub", ["ids", "ids"], "segments")  # every token is of segment 0
    names = [f"{prefix}.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
    tables = [graph.weight(name) for name in names]
    norm = [graph.weight(f"{prefix}.LayerNorm.{part}") for part in ("weight", "bias")]
    # The operator insists on a second output, which is for an older way to give a mask.
    inputs = ["ids", "segments", *tables, *norm]
    outputs = [f"{prefix}.out", f"{prefix}.unused"]
    graph.nodes.append(
        helper.make_node("EmbedLayerNormalization", inputs, outputs, domain="com.microsoft", epsilon=EPSILON)
    )
    return outputs[0]


def _layer(graph: Graph, hidden: str, at: str) -> str:
    parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
    packed = np.concatenate([graph.tensors[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.tensors[f"{part}.bias"] for part in parts])
    packed_name = graph.add_weight(f"{at}.qkv.weight", packed)
    bias_name = graph.add_weight(f"{at}.qkv.bias", bias)
    context = graph.add_contrib(
        "Attention", [hidden, packed_name, bias_name, "lengths"], f"{at}.context", num_heads=HEADS
    )
    mixed = graph.add("MatMul", [context, graph.matrix(f"{at}.attention.output.dense.weight")], f"{at}.mixed")
    attended = _add_and_norm(graph, mixed, hidden, f"{at}.attention.output")
    wide = graph.add("MatMul", [attended, graph.matrix(f"{at}.intermediate.dense.weight")], f"{at}.wide")
    active = graph.add_contrib("BiasGelu", [wide, graph.weight(f"{at}.intermediate.dense.bias")], f"{at}.active")
    narrow = graph.add("MatMul", [active, graph.matrix(f"{at}.output.dense.weight")], f"{at}.narrow")
    return _add_and_norm(graph, narrow, attended, f"{at}.output")


def _add_and_norm(graph: Graph, value: str, skip: str, at: str) -> str:
    norm = [graph.weight(f"{at}.LayerNorm.{part}") for part in ("weight", "bias")]
    inputs = [value, skip, *norm, graph.weight(f"{at}.dense.bias")]
    return graph.add_contrib("SkipLayerNormalization", inputs, f"{at}.normed", epsilon=EPSILON)


def _pool(graph: Graph) -> None:
    zero, one = (graph.constant(f"pool.{n}", np.array(n, dtype=np.int32)) for n in (0, 1))
    axis = graph.constant("pool.axis", np.array([1], dtype=np.int64))
    tokens = graph.add("Shape", ["ids"], "pool.tokens", start=1, end=2)
    scalar = graph.add("Squeeze", [tokens], "pool.count64")
    count = graph.add("Cast", [scalar], "pool.count", to=TensorProto.INT32)
    places = graph.add("Range", [zero, count, one], "pool.places")
    column = graph.add("Unsqueeze", ["lengths", axis], "pool.column")
    kept = graph.add("Cast", [graph.add("Less", [places, column], "pool.less")], "pool.kept", to=TensorProto.FLOAT)
    row = graph.add("Unsqueeze", [kept, axis], "pool.row")
    # The sum points where the mean points, and both end at length 1.
    summed = graph.add("Squeeze", [graph.add("MatMul", [row, "hidden"], "pool.rows"), axis], "pool.sum")
    graph.add("LpNormalization", [summed], "vectors", axis=-1, p=2)


def _model(graph: Graph) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT32, ["n", "tokens"]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["n"]),
    ]
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", WIDTH])
    initializers = graph.constants + [_external(name, value) for name, value in graph.weights.items()]
    body = helper.make_graph(graph.nodes, "minilm", inputs, [output], initializers)
    # 18 and 9: old enough for every onnxruntime that is supported, new enough for `Shape` with a range.
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=9)


def _external(name: str, value: Array) -> TensorProto:
    # onnxruntime wants the declaration; the data comes through `add_external_initializers`.
    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="given")
    return tensor
