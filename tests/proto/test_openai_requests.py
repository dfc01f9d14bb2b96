"""What an OpenAI body may say, and which field is named when it says something else."""

from array import array
from collections.abc import Callable

import pytest

from radixgate.errors import RequestError
from radixgate.proto.fields import MAX_NESTING, decode_object
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import ChatPrompt, IdsPrompt, TextPrompt, parse_chat, parse_completion

USER = {"role": "user", "content": "hi"}


def test_only_given_sampling_fields_reach_the_wire() -> None:
    request = parse_chat({"messages": [USER], "temperature": 0, "top_k": None})
    assert request.sampling.HasField("temperature")
    assert request.sampling.temperature == 0.0
    assert not request.sampling.HasField("top_k")
    assert not request.sampling.HasField("max_tokens")
    assert request.model is None
    assert not request.stream


def test_a_text_completion_stops_after_16_tokens_unless_told() -> None:
    assert parse_completion({"prompt": "a"}).sampling.max_tokens == 16
    assert parse_completion({"prompt": "a", "max_tokens": 3}).sampling.max_tokens == 3


def test_unknown_fields_are_no_error() -> None:
    assert parse_chat({"messages": [USER], "foo": {"bar": 1}}).prompts == (ChatPrompt([USER]),)


def test_what_is_not_built_may_be_named_as_long_as_nothing_is_asked_of_it() -> None:
    nothing = {"functions": [], "echo": False, "prompt_logprobs": None, "audio": {}}
    request = parse_chat({"messages": [USER], "add_generation_prompt": True, **nothing})
    assert request.prompts == (ChatPrompt([USER]),)


def test_a_stop_string_stays_by_either_name() -> None:
    for name in ("no_stop_trim", "include_stop_str_in_output"):
        assert parse_completion({"prompt": "a", name: True}).sampling.no_stop_trim
        assert not parse_completion({"prompt": "a", name: False}).sampling.no_stop_trim


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        pytest.param("ab", [TextPrompt("ab")], id="text"),
        pytest.param(["a", "b"], [TextPrompt("a"), TextPrompt("b")], id="texts"),
        pytest.param([1, 2], [IdsPrompt(array("I", [1, 2]))], id="ids"),
        pytest.param(
            [[1], [2, 3]], [IdsPrompt(array("I", [1])), IdsPrompt(array("I", [2, 3]))], id="rows"
        ),
    ],
)
def test_the_four_forms_of_a_prompt(prompt: object, read: list[object]) -> None:
    assert list(parse_completion({"prompt": prompt}).prompts) == read


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "max_tokens": -1}, "max_tokens"),
        ({"messages": [USER], "max_tokens": "5"}, "max_tokens"),
        ({"messages": [USER], "max_tokens": 1.5}, "max_tokens"),
        ({"messages": [USER], "max_completion_tokens": 0}, "max_completion_tokens"),
        ({"messages": [USER], "temperature": -1}, "temperature"),
        ({"messages": [USER], "temperature": True}, "temperature"),
        ({"messages": [USER], "top_p": 0}, "top_p"),
        ({"messages": [USER], "top_k": 0}, "top_k"),
        ({"messages": [USER], "n": 0}, "n"),
        ({"messages": [USER], "n": 1000}, "n"),
        ({"messages": [USER], "stop": [1]}, "stop"),
        ({"messages": [USER], "stop": ""}, "stop"),
        ({"messages": [USER], "stream": "yes"}, "stream"),
        ({"messages": [USER], "stream_options": []}, "stream_options"),
        ({"messages": [USER], "logit_bias": {"a": 1}}, "logit_bias"),
        ({"messages": [USER], "logit_bias": {"1" * 5_000: 1}}, "logit_bias"),
        ({"messages": [USER], "max_completion_tokens": 4, "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "tool_choice": "none", "tools": [{}, 5]}, "tools[1]"),
        ({"messages": [USER], "logprobs": True, "top_logprobs": 99}, "top_logprobs"),
        ({"messages": [USER], "logprobs": False, "top_logprobs": 99}, "top_logprobs"),
        ({"messages": [USER], "response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [USER], "tool_choice": "required"}, "tool_choice"),
        ({"messages": [USER], "regex": "a+"}, "regex"),
        ({"messages": [USER], "guided_choice": ["a"]}, "guided_choice"),
        ({"messages": [USER], "allowed_token_ids": [1]}, "allowed_token_ids"),
        ({"messages": [USER], "continue_final_message": True}, "continue_final_message"),
        ({"messages": [USER], "add_generation_prompt": False}, "add_generation_prompt"),
        ({"messages": [USER], "chat_template": "{{ messages }}"}, "chat_template"),
        ({"messages": [USER], "documents": [{"text": "a"}]}, "documents"),
        ({"messages": [USER], "add_special_tokens": True}, "add_special_tokens"),
        ({"messages": [USER], "functions": [{"name": "f"}]}, "functions"),
        ({"messages": [USER], "echo": True}, "echo"),
        ({"messages": [USER], "return_token_ids": True}, "return_token_ids"),
        ({"messages": [USER], "prompt_logprobs": 0}, "prompt_logprobs"),
        ({"messages": [USER], "priority": 2**31}, "priority"),
        ({"messages": [USER], "temperature": 10**400}, "temperature"),
        ({"messages": [USER], "logit_bias": {"1": 1e39}}, "logit_bias"),
    ],
)
def test_a_wrong_chat_names_its_field(body: dict[str, object], field: str) -> None:
    with pytest.raises(RequestError) as wrong:
        parse_chat(body)
    assert wrong.value.param == field
    assert wrong.value.status == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt[1]"),
        ({"prompt": [1, True]}, "prompt[1]"),
        ({"prompt": [[1, -1]]}, "prompt[0][1]"),
        ({"prompt": [2**32]}, "prompt[0]"),
        ({"prompt": "a", "best_of": 3}, "best_of"),
        ({"prompt": "a", "use_beam_search": True}, "use_beam_search"),
        ({"prompt": "a", "truncate_prompt_tokens": 5}, "truncate_prompt_tokens"),
        ({"prompt": ["a", "b"], "rid": "r"}, "rid"),
    ],
)
def test_a_wrong_completion_names_its_field(body: dict[str, object], field: str) -> None:
    with pytest.raises(RequestError) as wrong:
        parse_completion(body)
    assert (wrong.value.param or "").startswith(field)


def test_token_ids_may_be_written_as_fractions_that_are_none() -> None:
    (prompt,) = parse_completion({"prompt": [2.0, 3, 4.0]}).prompts
    assert isinstance(prompt, IdsPrompt)
    assert [*prompt.ids] == [2, 3, 4]
    with pytest.raises(RequestError, match=r"prompt\[0\] must be a token id, not 2\.5"):
        parse_completion({"prompt": [2.5, 3]})


@pytest.mark.parametrize(
    ("parse", "field"), [(parse_completion, "prompt"), (parse_generate, "input_ids")]
)
def test_an_empty_array_is_called_empty(
    parse: Callable[[dict[str, object]], GenerationRequest], field: str
) -> None:
    with pytest.raises(RequestError, match=f"{field} is empty"):
        parse({field: []})


@pytest.mark.parametrize("body", [b"{", b"[]", b"", b"\xff", b'"text"', b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError) as wrong:
        decode_object(body)
    assert wrong.value.param == "body"


@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("depth", [200, 201, 600, 960, 990])
def test_a_body_may_nest_so_deep_and_is_refused_beyond(
    opens: bytes, closes: bytes, depth: int
) -> None:
    inner = opens * (depth - 1) + b"0" + closes * (depth - 1)
    body = b'{"messages": [], "functions": %b}' % inner
    if depth <= MAX_NESTING:
        assert decode_object(body).keys() == {"messages", "functions"}
        return
    with pytest.raises(RequestError, match="body") as wrong:
        decode_object(body)
    assert (wrong.value.param, wrong.value.status) == ("body", 400)


def test_many_brackets_side_by_side_nest_no_deeper() -> None:
    assert len(decode_object(b'{"a": "[[", "b": [%b[]]}' % (b"[], " * 300))) == 2


def test_what_asks_for_nothing_may_be_nested_as_deep_as_it_likes() -> None:
    nothing: list[object] = []
    for _ in range(990):
        nothing = [None, nothing]
    assert parse_chat({"messages": [USER], "functions": nothing}).prompts == (ChatPrompt([USER]),)
    with pytest.raises(RequestError, match="functions"):
        parse_chat({"messages": [USER], "functions": [nothing, 1]})


def test_m02_a_turn_is_a_prefix_of_the_next_in_both_forms_of_content() -> None:
    first = [{"role": "system", "content": "S"}, USER]
    second = [*first, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "go"}]
    parts = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in second]
    turn1 = parse_chat({"messages": first}).prompts[0].routing_bytes()
    turn2 = parse_chat({"messages": second}).prompts[0].routing_bytes()
    assert turn2.startswith(turn1)
    assert len(turn2) > len(turn1)
    assert parse_chat({"messages": parts}).prompts[0].routing_bytes() == turn2
