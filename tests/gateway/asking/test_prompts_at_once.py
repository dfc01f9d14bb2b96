"""Where little of a prompt is new it is read without a thread, and is what it is from one."""

import random
from array import array
from collections.abc import Sequence

import pytest

from radixgate.errors import RequestError
from radixgate.fleet.fleet import MirrorKey
from radixgate.gateway.asking.prompt_tokens import (
    AT_ONCE_CHARS,
    RENDERED_AT_ONCE_BYTES,
    PromptTokenizer,
    Read,
    ServedModel,
)
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle

KEY = MirrorKey("toy", "tokens", 16)
TOY = toy_tokenizer_bundle()
WHOLE = PromptEncoder(TOY)
Messages = Sequence[dict[str, str]]


def tokenizer(vocab_size: int = 512) -> PromptTokenizer:
    made = PromptTokenizer()
    made.learn(ServedModel("toy", "w", "t", vocab_size, 100_000, PromptEncoder(TOY)))
    return made


def at_once(prompts: PromptTokenizer, generation: GenerationRequest) -> Read | None:
    """None: it waits for a thread."""
    reading = prompts.read("toy", generation, [KEY])
    try:
        reading.send(None)
    except StopIteration as ended:
        read: Read = ended.value
        return read
    finally:
        reading.close()
    return None


def chat(turns: Messages) -> GenerationRequest:
    return parse_chat({"messages": list(turns)})


def said(*contents: str) -> Messages:
    roles = ("user", "assistant") * len(contents)
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


def ids_of(turns: Messages) -> "array[int]":
    """Of the whole text, by the tokenizer alone."""
    text = WHOLE.render_messages(turns, tools=None, template_kwargs=None)
    return WHOLE.tokenizer.encode(text)


async def test_a_turn_that_is_new_is_read_at_once() -> None:
    prompts = tokenizer()
    before = said("x" * 2_000, "y" * 2_000)
    await prompts.read("toy", chat(before), [KEY])
    turns = [*before, {"role": "user", "content": "z" * (AT_ONCE_CHARS - 100)}]
    read = at_once(prompts, chat(turns))
    assert read is not None
    tokens, blocks = read
    assert tokens.prompts == (ids_of(turns),)
    assert blocks == {KEY: chain(root_id("w", None, None), ids_of(turns), 16)}


@pytest.mark.parametrize(
    "generation",
    [
        pytest.param(chat(said("x" * 2_000)), id="all-new"),
        pytest.param(parse_completion({"prompt": "x" * 600}), id="text"),
        pytest.param(parse_completion({"prompt": ["x" * 300, "y" * 300]}), id="in-all"),
        pytest.param(parse_completion({"prompt": [7] * RENDERED_AT_ONCE_BYTES}), id="many-ids"),
    ],
)
async def test_more_than_that_waits_for_the_thread(generation: GenerationRequest) -> None:
    prompts = tokenizer()
    assert at_once(prompts, generation) is None
    tokens, _ = await prompts.read("toy", generation, [KEY])
    assert tokens.total > AT_ONCE_CHARS


MANY = [{"role": "user", "content": ""}] * 300
LISTED = [{"role": "user", "content": [{"type": "text", "text": ""}] * 300}]
LOOPED: dict[str, object] = {"chat_template_kwargs": {"documents": [{}] * 9}}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"messages": MANY}, id="messages"),
        pytest.param({"messages": LISTED}, id="parts"),
        pytest.param({"messages": said("hi"), **LOOPED}, id="what-a-template-may-loop-over"),
    ],
)
async def test_very_many_parts_are_rendered_in_the_thread(body: dict[str, object]) -> None:
    """However short they are, a template takes some time over each."""
    prompts, generation = tokenizer(), parse_chat(body)
    assert at_once(prompts, generation) is None
    await prompts.read("toy", generation, [KEY])
    assert at_once(prompts, generation) is None


async def test_a_flag_for_the_template_needs_no_thread() -> None:
    generation = parse_chat(
        {"messages": said("hi"), "chat_template_kwargs": {"enable_thinking": False}}
    )
    assert at_once(tokenizer(), generation) is not None


async def test_what_is_long_is_not_looked_through_on_the_loop_even_if_it_is_known() -> None:
    prompts, known = tokenizer(), chat(said("x" * RENDERED_AT_ONCE_BYTES))
    await prompts.read("toy", known, [KEY])
    assert at_once(prompts, known) is None


async def test_however_a_conversation_grows_its_ids_are_those_of_the_whole() -> None:
    rng = random.Random(5)
    prompts, threads = tokenizer(), 0
    pieces = ["word ", "é", "<|im_end|>", "<|im_start|>user\n", "<|im", "\n", "7" * 300]
    for _ in range(20):
        turns: list[dict[str, str]] = []
        for turn in range(rng.randrange(1, 5)):
            content = "".join(rng.choices(pieces, k=rng.randrange(8)))
            turns.append({"role": ("user", "assistant")[turn % 2], "content": content})
            read = at_once(prompts, chat(turns))
            threads += read is None
            tokens, _ = read or await prompts.read("toy", chat(turns), [KEY])
            assert tokens.prompts == (ids_of(turns),)
    assert threads > 0


@pytest.mark.parametrize(
    ("generation", "named"),
    [
        pytest.param(chat(said("é")), "messages", id="by-the-tokenizer"),
        pytest.param(parse_completion({"prompt": [1, 200]}), "prompt", id="by-the-client"),
    ],
)
def test_an_id_that_the_model_lacks_is_refused(generation: GenerationRequest, named: str) -> None:
    """Wherever it comes from; here the model has fewer tokens than its tokenizer."""
    with pytest.raises(RequestError, match="the model has 128 tokens") as refused:
        at_once(tokenizer(vocab_size=128), generation)
    assert refused.value.param == named
