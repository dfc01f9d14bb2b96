"""Text comes out in whole characters, at once, and as the tokenizer decodes the whole."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.text.detokenizer import Detokenizer
from radixgate.text.tokenizer import Tokenizer
from vocabularies import tokenizer_of

BYTES = tokenizer_of(special=("<|end|>", "<é>"))
# Tokens of several bytes that begin and end inside characters.
MIXED = tokenizer_of("日本", "a日", "😀", "é語", " z", special=("<|end|>", "<é>"))
VOCABULARIES = [pytest.param(BYTES, id="bytes"), pytest.param(MIXED, id="mixed")]

BROKEN = "\ufffd"


def deltas(detokenizer: Detokenizer, ids: Sequence[int]) -> list[str]:
    out = []
    for token_id in ids:
        out.append(detokenizer.push(token_id))
        detokenizer.check()
    return [*out, detokenizer.flush()]


def text_of(data: bytes) -> str:
    """Decoded with U+FFFD for what is broken, and without an unfinished end."""
    for length in (1, 2, 3):
        try:
            data[-length:].decode()
        except UnicodeDecodeError as exc:
            if exc.start == 0 and exc.reason == "unexpected end of data":
                data = data[:-length]
                break
    return data.decode("utf-8", "replace")


@pytest.mark.parametrize("tokenizer", VOCABULARIES)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("é日本語😀z", id="a-mixed-widths"),
        pytest.param("😀" * 50, id="b-repeated"),
        pytest.param(BROKEN + "abc", id="c-a-real-replacement-character"),
    ],
)
def test_g11_whole_characters_only(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    out = deltas(Detokenizer(tokenizer), ids)
    assert "".join(out) == text == tokenizer.decode(ids)
    assert BROKEN in text or all(BROKEN not in delta for delta in out)
    assert len(out) == len(ids) + 1  # one entry a token, whatever it shows: logprobs line up


def test_g11_b_every_character_comes_with_its_last_byte() -> None:
    out = deltas(Detokenizer(BYTES), BYTES.encode("😀" * 50))
    assert out == ["", "", "", "😀"] * 50 + [""]


def test_g11_c_a_real_replacement_character_is_complete_after_its_three_bytes() -> None:
    out = deltas(Detokenizer(BYTES), BYTES.encode(BROKEN + "abc"))
    assert out == ["", "", BROKEN, "a", "b", "c", ""]


def test_g11_d_an_output_cut_inside_a_character_ends_without_it() -> None:
    assert deltas(Detokenizer(BYTES), BYTES.encode("日")[:2]) == ["", "", ""]


@pytest.mark.parametrize(
    ("prompt", "output", "shown"),
    [
        pytest.param("x日".encode()[:3], b"abc", "abc", id="e-left-open"),
        pytest.param("x日".encode()[:3], "日".encode()[2:] + b"!", "日!", id="finished"),
        pytest.param("x😀".encode()[:2], "😀".encode()[1:3] + b"a", "a", id="broken-off-later"),
        pytest.param(BROKEN.encode()[:2], BROKEN.encode()[2:], BROKEN, id="a-real-one"),
        pytest.param("日".encode()[:1], "本".encode(), "本", id="another-begins"),
        pytest.param("whole 日".encode(), b"\x97", BROKEN, id="nothing-was-open"),
    ],
)
def test_g11_e_a_character_that_began_in_the_prompt(
    prompt: bytes, output: bytes, shown: str
) -> None:
    detokenizer = Detokenizer(BYTES, prompt_ids=list(prompt))
    out = deltas(detokenizer, list(output))
    assert "".join(out) == shown


def test_bytes_that_are_no_character_are_shown_as_broken_once_it_is_sure() -> None:
    out = deltas(Detokenizer(BYTES), [0xE6, 0x97, ord("a"), 0xFF])
    assert out == ["", "", BROKEN + "a", BROKEN, ""]


def test_special_tokens_are_hidden_or_shown() -> None:
    ids = [*b"hi", 256, 257]
    assert deltas(Detokenizer(BYTES), ids) == ["h", "i", "", "", ""]
    assert deltas(Detokenizer(BYTES, False), ids) == ["h", "i", "<|end|>", "<é>", ""]


@pytest.mark.parametrize("tokenizer", VOCABULARIES)
@given(data=st.data(), skip=st.booleans())
def test_deltas_joined_are_the_decoded_whole(
    tokenizer: Tokenizer, data: st.DataObject, skip: bool
) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    shown = b"".join(map(tokenizer.token_bytes if skip else tokenizer.shown_bytes, ids))
    assert "".join(deltas(Detokenizer(tokenizer, skip), ids)) == text_of(shown)
    assert tokenizer.decode(ids, skip) == shown.decode("utf-8", "replace")


@given(
    ids=st.lists(st.sampled_from([*"é日😀".encode(), 0x41, 0xFF, 256]), max_size=16),
    cuts=st.tuples(st.integers(0, 16), st.integers(0, 16)),
)
def test_a_continued_output_goes_on_as_if_it_had_never_stopped(
    ids: list[int], cuts: tuple[int, int]
) -> None:
    prompt, rest = ids[: min(cuts)], ids[min(cuts) :]
    sent, output = rest[: max(cuts) - min(cuts)], rest[max(cuts) - min(cuts) :]
    straight = Detokenizer(BYTES, prompt_ids=prompt)
    before = "".join(straight.push(token_id) for token_id in sent)
    after = "".join(straight.push(token_id) for token_id in output)

    resumed = Detokenizer(BYTES, prompt_ids=prompt, prior_output_ids=sent)
    resumed.check()
    assert "".join(resumed.push(token_id) for token_id in output) == after, before
