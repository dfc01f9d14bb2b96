"""What is refused before a foreign worker is asked, and what is left to it."""

import json
from array import array

import pytest

from radixgate.errors import RequestError
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.large_bodies import priority_of

CHAT = b"/v1/chat/completions"
COMPLETION = b"/v1/completions"
NATIVE = b"/generate"
EMBED = b"/v1/embeddings"
RERANK = b"/v1/rerank"
RESPONSE = b"/v1/responses"


def read(path: bytes, body: object) -> ForeignRequest:
    return read_foreign(path, json.dumps(body).encode())


HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        pytest.param(CHAT, {}, "messages", id="no-messages"),
        pytest.param(CHAT, {"messages": []}, "messages", id="messages-empty"),
        pytest.param(CHAT, {"messages": "hi"}, "messages", id="messages-no-array"),
        pytest.param(CHAT, {"messages": ["hi"]}, "messages[0]", id="message-no-object"),
        pytest.param(CHAT, {"messages": [{"content": "a"}]}, "messages[0].role", id="no-role"),
        pytest.param(
            CHAT,
            {"messages": [{"role": "user", "content": 5}]},
            "messages[0].content",
            id="content",
        ),
        pytest.param(CHAT, {"messages": HI, "tools": "t"}, "tools", id="tools"),
        pytest.param(CHAT, {"messages": HI, "stream": "yes"}, "stream", id="stream"),
        pytest.param(CHAT, {"messages": HI, "max_tokens": 0}, "max_tokens", id="max-tokens-0"),
        pytest.param(CHAT, {"messages": HI, "max_tokens": -1}, "max_tokens", id="max-tokens-minus"),
        pytest.param(CHAT, {"messages": HI, "max_tokens": 1.5}, "max_tokens", id="max-tokens-half"),
        pytest.param(CHAT, {"messages": HI, "max_tokens": "9"}, "max_tokens", id="max-tokens-text"),
        pytest.param(CHAT, {"messages": HI, "temperature": -1}, "temperature", id="temperature"),
        pytest.param(CHAT, {"messages": HI, "temperature": True}, "temperature", id="a-boolean"),
        pytest.param(CHAT, {"messages": HI, "top_p": 0}, "top_p", id="top-p-0"),
        pytest.param(CHAT, {"messages": HI, "top_p": 1.1}, "top_p", id="top-p-over-1"),
        pytest.param(CHAT, {"messages": HI, "top_p": 10**400}, "top_p", id="top-p-huge"),
        pytest.param(CHAT, {"messages": HI, "n": 0}, "n", id="n-0"),
        pytest.param(COMPLETION, {"prompt": []}, "prompt", id="prompt-empty"),
        pytest.param(COMPLETION, {"prompt": 5}, "prompt", id="prompt-number"),
        pytest.param(COMPLETION, {"prompt": ["a", 5]}, "prompt[1]", id="prompt-mixed"),
        pytest.param(COMPLETION, {"prompt": [1, -2]}, "prompt[1]", id="prompt-no-token"),
        pytest.param(EMBED, {}, "input", id="nothing-to-embed"),
        pytest.param(EMBED, {"input": []}, "input", id="empty-array-to-embed"),
        pytest.param(EMBED, {"messages": []}, "messages", id="no-messages-to-embed"),
        pytest.param(EMBED, {"input": [{"text": "a"}, "b"]}, "input[0]", id="mixed-to-embed"),
        pytest.param(COMPLETION, {"prompt": None}, "prompt", id="prompt-null"),
        pytest.param(COMPLETION, {"prompt": "a", "max_tokens": -1}, "max_tokens", id="minus-1"),
        pytest.param(RERANK, {"documents": ["a"]}, "query", id="no-query"),
        pytest.param(RESPONSE, {"input": 5}, "input", id="input-number"),
        pytest.param(RESPONSE, {"input": "a", "top_p": 2}, "top_p", id="response-top-p"),
        pytest.param(NATIVE, {}, "text", id="native-nothing"),
        pytest.param(NATIVE, {"text": "a", "input_ids": [1]}, "text", id="native-both"),
        pytest.param(NATIVE, {"text": "a", "sampling_params": 5}, "sampling_params", id="params"),
        pytest.param(
            NATIVE,
            {"text": "a", "sampling_params": {"top_p": 0}},
            "sampling_params.top_p",
            id="native-top-p",
        ),
    ],
)
def test_what_no_engine_can_answer_is_refused_by_name(
    path: bytes, body: dict[str, object], field: str
) -> None:
    with pytest.raises(RequestError) as refused:
        read(path, body)
    assert refused.value.param == field
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(CHAT, {"messages": HI, "temperature": None, "foo": 1}, id="null-and-unknown"),
        pytest.param(
            CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, id="image"
        ),
        pytest.param(
            CHAT, {"messages": HI, "response_format": {"type": "json_object"}}, id="format"
        ),
        pytest.param(CHAT, {"messages": HI, "top_p": 1, "max_tokens": 1}, id="whole-numbers"),
        pytest.param(CHAT, {"messages": HI, "max_tokens": 2.0, "n": 1.0}, id="numbers-of-one-kind"),
        pytest.param(COMPLETION, {"prompt": "a", "echo": True, "max_tokens": 0}, id="scored-only"),
        pytest.param(COMPLETION, {"prompt_embeds": "AAAA"}, id="prompt-embedded"),
        pytest.param(COMPLETION, {"prompt": None, "prompt_embeds": ["AA"]}, id="null-for-a-prompt"),
        pytest.param(EMBED, {"messages": HI}, id="messages-to-embed"),
        pytest.param(EMBED, {"text": "a"}, id="text-to-embed"),
        pytest.param(EMBED, {"input": [{"text": "a", "image": "b"}]}, id="objects-to-embed"),
        pytest.param(RERANK, {"query": {"content": [HI]}, "documents": []}, id="query-of-parts"),
        pytest.param(NATIVE, {"text": "a", "sampling_params": {"max_new_tokens": 8.0}}, id="8.0"),
        pytest.param(NATIVE, {"text": "a", "lora_path": "x", "custom_params": {}}, id="extensions"),
        pytest.param(NATIVE, {"input_embeds": [[0.1]]}, id="embeddings"),
        pytest.param(NATIVE, {"text": ["a"], "sampling_params": [{}]}, id="params-a-prompt"),
        pytest.param(NATIVE, {"text": "a", "sampling_params": {"max_new_tokens": 0}}, id="none"),
    ],
)
def test_extensions_are_left_to_the_worker(path: bytes, body: dict[str, object]) -> None:
    read(path, body)


def turns(*texts: str) -> list[dict[str, object]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("path", "shorter", "longer"),
    [
        pytest.param(CHAT, {"messages": turns("a")}, {"messages": turns("a", "b", "c")}, id="chat"),
        pytest.param(COMPLETION, {"prompt": "ab"}, {"prompt": "abc"}, id="text"),
        pytest.param(COMPLETION, {"prompt": ["ab"]}, {"prompt": ["abc"]}, id="texts"),
        pytest.param(COMPLETION, {"prompt": [[1, 2]]}, {"prompt": [[1, 2, 3]]}, id="ids-in-array"),
        pytest.param(EMBED, {"input": "ab"}, {"input": "abc"}, id="embedded-text"),
        pytest.param(
            EMBED, {"messages": turns("a")}, {"messages": turns("a", "b")}, id="embedded-messages"
        ),
        pytest.param(
            RESPONSE, {"input": turns("a")}, {"input": turns("a", "b", "c")}, id="response-items"
        ),
        pytest.param(
            RESPONSE,
            {"instructions": "be brief", "input": "a"},
            {"instructions": "be brief", "input": [*turns("a", "b"), {"type": "reasoning"}]},
            id="response-text-then-items",
        ),
        pytest.param(NATIVE, {"text": "ab"}, {"text": "abc"}, id="native-text"),
        pytest.param(NATIVE, {"input_ids": [1, 2]}, {"input_ids": [1, 2, 3]}, id="native-ids"),
    ],
)
def test_m02_a_turn_is_a_prefix_of_the_next(
    path: bytes, shorter: dict[str, object], longer: dict[str, object]
) -> None:
    first = read(path, shorter).prompt
    assert first
    assert read(path, longer).prompt.startswith(first)


def test_m02_parts_read_as_the_text_they_hold() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert read(CHAT, {"messages": parts}) == read(CHAT, {"messages": HI})


def test_ids_are_packed() -> None:
    assert read(NATIVE, {"input_ids": [1, 2]}).prompt == array("I", [1, 2]).tobytes()


def test_what_steers_the_route_besides_the_prompt() -> None:
    body = {"text": "a", "user": "u", "priority": 3, "cache_salt": "s"}
    got = read(NATIVE, body)
    assert (got.session, got.priority, got.salt) == ("u", 3, "s")


@pytest.mark.parametrize(
    ("written", "priority"),
    [
        ("2", 2),
        ("2.0", 2),
        ("-2.0", -2),
        ("2e0", 2),
        ("1e300", 2**31 - 1),
        ("-1e300", -(2**31)),
        ("1" + 400 * "0", 2**31 - 1),
        ("-2147483649", -(2**31)),
        ("-2147483648", -(2**31)),
        ("2.5", 0),
        ('"2"', 0),
        ("true", 0),
        ("null", 0),
    ],
)
def test_a_priority_may_be_written_as_a_fraction_that_is_none(written: str, priority: int) -> None:
    body = b'{"text": "a", "priority": %b}' % written.encode()
    assert read_foreign(NATIVE, body).priority == priority
    assert priority_of(body) == priority


def test_a_stored_response_is_gone_on_with_where_it_was_answered() -> None:
    body = {"input": "and then?", "previous_response_id": "resp_1", "user": "u"}
    assert read(RESPONSE, body).session == "resp_1"
    assert read(RESPONSE, {**body, "conversation": "conv_1"}).session == "conv_1"
    assert read(RESPONSE, {"input": "hi", "user": "u"}).session == "u"


@pytest.mark.parametrize(
    ("path", "field"),
    [(b"/v1/completions", "prompt"), (b"/generate", "input_ids"), (b"/v1/embeddings", "input")],
)
def test_token_ids_written_as_fractions_that_are_none_are_ids(path: bytes, field: str) -> None:
    as_ids = read_foreign(path, b'{"%b": [2, 3]}' % field.encode())
    assert read_foreign(path, b'{"%b": [2.0, 3]}' % field.encode()) == as_ids
    with pytest.raises(RequestError, match=r"must be a token id, not 2\.5"):
        read_foreign(path, b'{"%b": [2.5, 3]}' % field.encode())
