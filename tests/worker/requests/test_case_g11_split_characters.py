"""G11: characters that are spread over several tokens leave the engine whole."""

import pytest

from scripted_logits import scripted
from small_engine import Ear, SmallEngine
from vocabularies import tokenizer_of

BYTES = tokenizer_of()


def say(data: bytes, prompt: bytes = b"?", most: int | None = None) -> Ear:
    engine = SmallEngine(
        tokenizer=BYTES, vocab_size=300, processors=scripted(list(data)), pages=256
    )
    ear = engine.answer(list(prompt), max_tokens=most or len(data), top_logprobs=0)
    assert len(ear.ids(1)) == sum(len(item.logprobs) for item in ear.of(1))
    return ear


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("é日本語😀z", id="a-of-every-length"),
        pytest.param("😀" * 50, id="b-fifty-emoji"),
        pytest.param("\ufffdabc", id="c-a-real-replacement-character"),
    ],
)
def test_g11_every_piece_is_whole_characters(text: str) -> None:
    ear = say(text.encode())
    assert ear.text(1) == text
    if "\ufffd" not in text:
        assert not any("\ufffd" in item.text for item in ear.of(1))


def test_g11_a_real_replacement_character_comes_with_its_last_byte() -> None:
    assert [item.text for item in say("\ufffdabc".encode()).of(1)][:4] == ["", "", "\ufffd", "a"]


def test_g11_an_output_cut_inside_a_character_ends_normally() -> None:
    ear = say("日".encode(), most=2)
    assert (ear.text(1), ear.finish(1)) == ("", "LENGTH")


def test_g11_a_character_begun_in_the_prompt_is_finished_in_the_output() -> None:
    sun = "日".encode()
    assert say(sun[2:] + b"abc", prompt=b"x" + sun[:2]).text(1) == "日abc"
