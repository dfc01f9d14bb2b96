"""A prompt that is many times too long is refused before all of it has been encoded."""

from array import array
from collections.abc import Iterable, Mapping, Sequence

import pytest

from radixgate.errors import RequestError
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer, ServedModel
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.text.chat_messages import for_template

CONTEXT = 1_000


class Words:
    """An encoder to which each word is a token; remembers how much it was given."""

    start_ids: Sequence[int] = ()
    highest_id = 1

    def __init__(self) -> None:
        self.encoded = 0

    @property
    def tokenizer(self) -> "Words":
        return self

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        return ""

    def shown_bytes(self, token_id: int) -> bytes:
        return b""

    def encode_text(self, text: str) -> "array[int]":
        self.encoded += len(text)
        return array("I", [1] * len(text.split()))

    def render_messages(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[object] | None,
        template_kwargs: Mapping[str, object] | None,
    ) -> str:
        """As a template that drops all up to a thought's end."""
        plain = for_template(messages)
        return f"{tools} " + " ".join(one["content"].split("</think>")[-1] for one in plain)

    def encode_rendered(self, text: str) -> "array[int]":
        return self.encode_text(text)

    def unknown_chars(self, text: str) -> int:
        return len(text)


def tokenizer(words: Words) -> PromptTokenizer:
    made = PromptTokenizer()
    made.learn(ServedModel("toy", "w", "t", 10, CONTEXT, words))
    return made


MANY = "word " * 1_000_000


def chat(**contents: object) -> dict[str, object]:
    return {"messages": [{"role": role, "content": text} for role, text in contents.items()]}


@pytest.mark.parametrize(
    "generation",
    [
        pytest.param(parse_completion({"prompt": "word " * 1_000_000}), id="completion"),
        pytest.param(parse_completion({"prompt": ["a", "word " * 1_000_000]}), id="the-second"),
        pytest.param(parse_chat(chat(user=MANY)), id="chat"),
        pytest.param(parse_chat(chat(user=[{"type": "text", "text": MANY}])), id="a-part"),
        pytest.param(
            parse_chat(chat(user=[{"type": "text", "text": "word "}] * 100_000)), id="parts"
        ),
        pytest.param(parse_chat(chat(system=MANY, user="hi")), id="system"),
        pytest.param(parse_chat(chat(developer=MANY, user="hi")), id="developer"),
        pytest.param(parse_chat(chat(user="hi", assistant=MANY)), id="assistant"),
        pytest.param(parse_chat(chat(user="hi", assistant="", tool=MANY)), id="tool"),
        pytest.param(
            parse_chat(
                {**chat(user="hi"), "tools": [{"type": "function", "function": {"name": MANY}}]}
            ),
            id="tools",
        ),
    ],
)
async def test_only_its_beginning_is_encoded(generation: GenerationRequest) -> None:
    words = Words()
    with pytest.raises(RequestError, match="far more than 1000 tokens") as refused:
        await tokenizer(words).read("toy", generation, ())
    assert refused.value.code == "context_length_exceeded"
    assert words.encoded < 20 * CONTEXT


async def test_of_long_words_as_much_is_encoded_as_shows_that_they_are_too_many() -> None:
    words = Words()
    generation = parse_completion({"prompt": ("x" * 99 + " ") * 500_000})
    with pytest.raises(RequestError, match="far more than 1000 tokens"):
        await tokenizer(words).read("toy", generation, ())
    assert words.encoded < 300 * CONTEXT


@pytest.mark.parametrize(
    ("generation", "tokens"),
    [
        pytest.param(parse_completion({"prompt": "w" * 50 + " x" * 900}), 901, id="short"),
        pytest.param(parse_completion({"prompt": ("x" * 99 + " ") * 900}), 900, id="long-words"),
        pytest.param(
            parse_chat(chat(user="x " * 900, assistant="thought " * 100_000 + "</think>")),
            901,
            id="left-out",
        ),
        pytest.param(parse_completion({"prompt": ("x" * 4_999 + " ") * 999}), 999, id="5-MB"),
    ],
)
async def test_what_fits_is_encoded_however_long_it_is(
    generation: GenerationRequest, tokens: int
) -> None:
    prompt, _ = await tokenizer(Words()).read("toy", generation, ())
    assert prompt.total == tokens
