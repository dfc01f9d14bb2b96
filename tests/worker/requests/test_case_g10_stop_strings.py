"""G10: stop strings, from tokens to the text that leaves the engine."""

from typing import Unpack

import pytest

from asking import Asked
from radixgate.text.tokenizer import Tokenizer
from scripted_logits import scripted
from small_engine import Ear, SmallEngine
from vocabularies import tokenizer_of

BYTES = tokenizer_of()
WITH_BETA = tokenizer_of("beta")


def say(text: str, tokenizer: Tokenizer, **asked: Unpack[Asked]) -> Ear:
    ids = tokenizer.encode(text)
    engine = SmallEngine(tokenizer=tokenizer, vocab_size=300, processors=scripted(ids))
    ear = engine.answer([1], **(Asked(max_tokens=len(ids)) | asked))
    engine.check_idle()
    return ear


@pytest.mark.parametrize(
    ("said", "tokenizer", "stop", "shown", "matched"),
    [
        pytest.param("alpha-beta-gamma", BYTES, ["-beta-"], "alpha", "-beta-", id="a"),
        pytest.param("alpha-beta-gamma", WITH_BETA, ["et"], "alpha-b", "et", id="b-inside-a-token"),
        pytest.param("alpha-bet!", BYTES, ["-beta"], "alpha-bet!", None, id="c-never-complete"),
        pytest.param(
            "alpha-beta-gamma",
            BYTES,
            ["a-g", "beta-gam"],
            "alpha-bet",
            "a-g",
            id="e-first-complete",
        ),
        pytest.param("alpha-beta-gamma", BYTES, ["a"], "", "a", id="f-first-character"),
    ],
)
def test_g10_the_text_ends_before_the_stop_string(
    said: str, tokenizer: Tokenizer, stop: list[str], shown: str, matched: str | None
) -> None:
    ear = say(said, tokenizer, stop=stop)
    assert ear.text(1) == shown
    assert ear.finish(1) == ("LENGTH" if matched is None else "STOP")
    if matched is not None:
        assert ear.of(1)[-1].finish.stop == matched


def test_g10_no_piece_shows_the_beginning_of_a_stop_string() -> None:
    pieces = [item.text for item in say("alpha-beta-gamma", BYTES, stop=["-beta-"]).of(1)]
    assert not any("-" in piece for piece in pieces)


def test_g10_text_held_back_at_the_last_token_comes_out() -> None:
    ear = say("alpha-beta", BYTES, stop=["-zz"], max_tokens=6)
    assert (ear.text(1), ear.finish(1)) == ("alpha-", "LENGTH")


def test_g10_untrimmed_the_stop_string_is_shown() -> None:
    ear = say("alpha-beta-gamma", BYTES, stop=["-beta-"], no_stop_trim=True)
    assert ear.text(1) == "alpha-beta-"


def test_g10_without_text_stop_strings_stop_all_the_same() -> None:
    ear = say("alpha-beta-gamma", BYTES, stop=["-beta-"], return_text=False)
    assert (ear.text(1), ear.finish(1)) == ("", "STOP")
    assert bytes(ear.ids(1)) == b"alpha-beta-"


@pytest.mark.parametrize("cut", range(1, 11))
def test_g10_a_request_that_goes_on_elsewhere_holds_back_the_same(cut: int) -> None:
    whole = say("alpha-beta-gamma", BYTES, stop=["-beta-"])
    shown = "".join(item.text for item in whole.of(1)[:cut])
    rest = say("alpha-beta-gamma", BYTES, stop=["-beta-"], prior=whole.ids(1)[:cut])
    assert shown + rest.text(1) == whole.text(1) == "alpha"
    assert rest.ids(1) == whole.ids(1)[cut:]
    assert rest.finish(1) == "STOP"
