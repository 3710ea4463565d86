"""Make the table of the embedder `static` from all-MiniLM-L6-v2: half a minute, and the same bytes each time.

    .nox/tests/bin/python packaging/make_static_vectors.py

Each token of the model's vocabulary is sent through the model alone; what comes out is cut to its 256 main directions
(principal components), weighted by how rare the token is (the vocabulary is sorted by frequency, and Zipf's law says
the rest), and rounded to whole numbers of 8 bits with one factor a token.
"""

# ruff: noqa: INP001  (a script)

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from memstory.models import static_vectors
from memstory_reference.adapters.embedding.minilm import load_model, pad
from memstory_reference.adapters.embedding.weights import find_weights

BATCH = 1024


def main() -> None:
    """Write both files, and say their digests."""
    weights = find_weights(Path.home() / ".cache" / "memstory")
    vocabulary = json.loads(weights.tokenizer.read_text("utf-8"))["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    model = load_model(weights, 2)
    begin, end = vocabulary["[CLS]"], vocabulary["[SEP]"]
    alone = [[begin, number, end] for number in range(len(tokens))]
    batches = [pad(alone[at : at + BATCH]) for at in range(0, len(alone), BATCH)]
    whole = np.concatenate([model.session.run(["vectors"], batch)[0] for batch in batches]).astype(np.float64)
    centred = whole - whole.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    rare = np.log(np.arange(1, len(tokens) + 1) + 1.0)
    table = (centred @ directions[: static_vectors.DIMENSION].T) * rare[:, None]
    factors = (np.abs(table).max(axis=1) / 127).astype("<f4")
    rows = np.rint(table / factors[:, None]).astype(np.int8)
    folder = static_vectors.FOLDER
    (folder / "tokens.vocab").write_text("\n".join(tokens) + "\n", "utf-8")
    (folder / "vectors.bin").write_bytes(factors.tobytes() + rows.tobytes())
    for name in ("tokens.vocab", "vectors.bin"):
        sys.stdout.write(f"{name} {hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n")


if __name__ == "__main__":
    main()
