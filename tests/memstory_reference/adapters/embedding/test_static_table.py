"""The embedder `static` reads texts as the model does of which its table is made."""

from functools import cache

import pytest
from tokenizers import Tokenizer

from memstory.exploring.values import ODD_TEXTS
from memstory.models.static_vectors import tokens_of
from memstory_reference.adapters.embedding.weights import find_weights

UNKNOWN = "[UNK]"
TEXTS = [
    *ODD_TEXTS.values(),
    "",
    "foo\u0300bar $5.00 #x @y ~z ^ ` | <>+=",
    "日本語 テスト 渡轮九点开 한국어 텍스트 नमस्ते",
    "a" * 150,
    "\x00a\x07b\u200bc\u00adz a\u2028b\u3000c",
]


@cache
def tokenizer(cache_folder):
    found = Tokenizer.from_file(str(find_weights(cache_folder).tokenizer))
    found.no_truncation()
    found.no_padding()
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_the_tokens_are_those_of_the_model(text, tmp_path_factory):
    wanted = tokenizer(tmp_path_factory.getbasetemp()).encode(text, add_special_tokens=False).tokens
    assert [*tokens_of(text)] == [one for one in wanted if one != UNKNOWN]
