"""G12: the last item of a choice carries its end, its counts, and what text is left."""

import pytest

from scripted_logits import scripted
from small_engine import SmallEngine
from vocabularies import tokenizer_of

TOKENIZER = tokenizer_of("hello")
EOS = min(TOKENIZER.eos_token_ids)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("tokens", [1, 5])
def test_g12_one_end_a_choice_and_it_comes_with_the_last_token(n: int, tokens: int) -> None:
    engine = SmallEngine(tokenizer=TOKENIZER, vocab_size=300, processors=scripted(b"Hello"))
    ear = engine.answer([1, 2, 3], max_tokens=tokens, n=n)
    for choice in range(n):
        items = ear.of(1, choice)
        assert [item.HasField("finish") for item in items] == [False] * (tokens - 1) + [True]
        assert list(items[-1].token_ids) == [b"Hello"[tokens - 1]]
        assert ear.text(1, choice) == "Hello"[:tokens]
        assert ear.finish(1, choice) == "LENGTH"
        with_counts = [place for place, item in enumerate(items) if item.HasField("counts")]
        assert with_counts == sorted({0, tokens - 1})
        counts = ear.counts(1, choice)
        assert (counts.prompt, counts.completion) == (3, tokens)


def test_g12_the_end_of_sequence_token_is_counted_and_not_shown() -> None:
    engine = SmallEngine(tokenizer=TOKENIZER, vocab_size=300, processors=scripted([*b"Hi", EOS]))
    ear = engine.answer([1], max_tokens=20)
    assert (ear.text(1), ear.finish(1)) == ("Hi", "STOP")
    assert ear.ids(1) == [*b"Hi", EOS]
    assert ear.of(1)[-1].finish.token_id == EOS
    assert ear.counts(1).completion == 3


def test_g12_ignored_the_end_of_sequence_token_ends_nothing() -> None:
    engine = SmallEngine(tokenizer=TOKENIZER, vocab_size=300, processors=scripted([EOS, *b"Hi"]))
    ear = engine.answer([1], max_tokens=3, ignore_eos=True)
    assert (ear.text(1), ear.finish(1)) == ("Hi", "LENGTH")


@pytest.mark.parametrize(
    ("skip", "shown"),
    [pytest.param(True, "Hi", id="skipped"), pytest.param(False, "<|end|>Hi", id="shown")],
)
def test_g12_special_tokens_are_shown_if_asked(skip: bool, shown: str) -> None:
    engine = SmallEngine(tokenizer=TOKENIZER, vocab_size=300, processors=scripted([EOS, *b"Hi"]))
    ear = engine.answer([1], max_tokens=3, ignore_eos=True, skip_special_tokens=skip)
    assert ear.text(1) == shown


def test_g12_a_stop_token_ends_the_output_and_held_text_comes_out() -> None:
    engine = SmallEngine(tokenizer=TOKENIZER, vocab_size=300, processors=scripted(b"ab!"))
    ear = engine.answer([1], max_tokens=9, stop_token_ids=[ord("!")], stop=["bc"])
    assert (ear.text(1), ear.finish(1)) == ("ab", "STOP")
    assert ear.of(1)[-1].finish.token_id == ord("!")


def test_g12_max_tokens_zero_computes_the_prompt_and_says_so() -> None:
    engine = SmallEngine()
    ear = engine.answer(list(range(10)), max_tokens=0)
    assert (ear.ids(1), ear.finish(1)) == ([], "LENGTH")
    assert ear.counts(1).prompt == 10
    assert engine.answer(list(range(10)), max_tokens=1).cached(1) == 8
