"""Messages become the prompt that the model was trained on, or an error that names them."""

from datetime import datetime
from typing import Any, cast

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from radixgate.errors import ModelError, RequestError
from radixgate.text.chat_template import ChatTemplate
from vocabularies import bundle_of

CHATML = """{% for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{% if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"""


def user(content: object, **keys: object) -> dict[str, Any]:
    return {"role": "user", "content": content, **keys}


def rendered(
    source: str,
    *messages: object,
    add_generation_prompt: bool = True,
    tools: list[dict[str, Any]] | None = None,
    template_kwargs: dict[str, Any] | None = None,
) -> str:
    return ChatTemplate(source, "<s>", "</s>").render(
        cast(list[dict[str, Any]], list(messages)) or [user("hi")],
        add_generation_prompt=add_generation_prompt,
        tools=tools,
        template_kwargs=template_kwargs,
    )


def test_blocks_leave_no_blank_lines() -> None:
    prompt = rendered(CHATML, user("hi"), {"role": "assistant", "content": "yes"}, user("go"))
    assert prompt == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
        "<|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n"
    )


def test_without_a_generation_prompt_the_last_message_stays_open() -> None:
    assert rendered(CHATML, add_generation_prompt=False) == "<|im_start|>user\nhi<|im_end|>\n"


def test_the_next_turn_begins_with_the_last_one() -> None:
    first = rendered(CHATML, user("hi"))
    assert rendered(CHATML, user("hi"), {"role": "assistant", "content": "x"}).startswith(first)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        pytest.param([], "", id="no-parts"),
        pytest.param(None, "", id="null"),
        pytest.param("a {{ b }}", "a {{ b }}", id="text-is-never-a-template"),
    ],
)
def test_content_is_text(content: object, text: str) -> None:
    assert rendered("{{ messages[0].content }}", user(content)) == text


def test_absent_content_is_empty() -> None:
    assert rendered("[{{ messages[0].content }}]", {"role": "assistant"}) == "[]"


@pytest.mark.parametrize(
    ("message", "named"),
    [
        pytest.param("hi", "messages[1]", id="not-an-object"),
        pytest.param({"content": "x"}, "messages[1].role", id="no-role"),
        pytest.param(user(7), "messages[1].content", id="a-number"),
        pytest.param(user(["x"]), "messages[1].content[0]", id="a-bare-part"),
        pytest.param(user([{"type": "image_url"}]), "messages[1].content[0]", id="an-image"),
        pytest.param(user([{"type": "text"}]), "messages[1].content[0].text", id="no-text"),
        pytest.param(user("", tool_calls=7), "messages[1].tool_calls", id="calls"),
        pytest.param(user("", tool_calls=[{}]), "messages[1].tool_calls[0]", id="no-function"),
        pytest.param(
            user("", tool_calls=[{"function": {"arguments": "{"}}]),
            "messages[1].tool_calls[0].function.arguments",
            id="arguments",
        ),
        pytest.param(
            user("", tool_calls=[{"function": {"arguments": "[" * 100_000}}]),
            "messages[1].tool_calls[0].function.arguments",
            id="arguments-nested-too-deep",
        ),
    ],
)
def test_a_message_of_the_wrong_shape_is_refused_by_its_place(message: object, named: str) -> None:
    with pytest.raises(RequestError) as refused:
        rendered(CHATML, user("hi"), message)
    assert refused.value.param == named
    assert refused.value.status == 400


def test_arguments_of_a_tool_call_reach_the_template_as_an_object() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": '{"x": 1}'}}
    source = "{% for c in messages[0].tool_calls %}{{ c.function.arguments.x + 1 }}{% endfor %}"
    assert rendered(source, user(None, tool_calls=[call])) == "2"


def test_the_callers_messages_stay_as_they_were() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    message = user([{"type": "text", "text": "a"}], tool_calls=[call])
    rendered(CHATML, message)
    assert message == user([{"type": "text", "text": "a"}], tool_calls=[call])
    assert call == {"function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("{{ bos_token }}{{ eos_token }}", "<s></s>", id="tokens"),
        pytest.param("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}', id="tojson"),
        pytest.param("{{ [1] | tojson(indent=1) }}", "[\n 1\n]", id="tojson-indent"),
        pytest.param("{{ tools is none }}", "True", id="no-tools"),
        pytest.param(
            "{% for i in range(5) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "01",
            id="loop-controls",
        ),
        pytest.param("{% generation %}x{% endgeneration %}", "x", id="generation-block"),
        pytest.param(
            "{% for i in [7, 8] %}{{ loop.index0 }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
            "0/2False 1/2True ",
            id="loop-variables",
        ),
        pytest.param("{{ thinking }}", "no", id="request-variables"),
    ],
)
def test_what_templates_count_on(source: str, text: str) -> None:
    assert rendered(source, template_kwargs={"thinking": "no"}) == text


@pytest.mark.parametrize("name", ["role", "name", "items", "update", "absent", "__class__"])
def test_a_field_is_what_it_is_to_jinja(name: str) -> None:
    message = user("hi", name="Eve", items="mine", update="mine")
    source = f"{{{{ messages[0].{name} is defined }}}} {{{{ messages[0].{name} is string }}}}"
    jinjas = ImmutableSandboxedEnvironment().from_string(source).render(messages=[message])
    assert rendered(source, message) == jinjas


def test_tools_reach_the_template() -> None:
    assert rendered("{{ tools[0].name }}", tools=[{"name": "f"}]) == "f"


def test_the_date_comes_from_the_given_clock() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}", now=lambda: datetime(2026, 1, 31))
    assert template.render([user("hi")]) == "31 Jan 2026"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ raise_exception('roles must alternate') }}", id="refused-by-template"),
        pytest.param("{{ messages[5].content }}", id="undefined"),
        pytest.param("{{ 'x' + 1 }}", id="type-error"),
        pytest.param("{{ ''.__class__.__mro__ }}", id="unsafe-attribute"),
        pytest.param("{{ messages.append(1) }}", id="mutation"),
        pytest.param("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", id="endless-recursion"),
    ],
)
def test_a_template_that_fails_names_the_messages(source: str) -> None:
    with pytest.raises(RequestError) as refused:
        rendered(source)
    assert refused.value.param == "messages"


def test_the_reason_of_the_template_reaches_the_client() -> None:
    with pytest.raises(RequestError, match="refuses the messages: roles must alternate"):
        rendered("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            id="loops-without-output",
        ),
        pytest.param(
            "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
            "{{ f(50) }}",
            id="doubling-calls",
        ),
        pytest.param("{% for m in messages %}{{ m.content }}{% endfor %}", id="long-output"),
    ],
)
def test_rendering_is_bounded(source: str) -> None:
    template = ChatTemplate(source, max_steps=500, max_characters=1_000)
    with pytest.raises(RequestError) as refused:
        template.render([user("x" * 300)] * 4)
    assert refused.value.param == "messages"


def test_each_rendering_has_its_own_budget() -> None:
    template = ChatTemplate("{% for m in messages %}.{% endfor %}", max_steps=12)
    assert [template.render([user("x")] * 10) for _ in range(3)] == ["." * 10] * 3


@pytest.mark.parametrize("name", ["messages", "raise_exception", "chat_template", "bos_token"])
def test_a_request_cannot_take_over_our_names(name: str) -> None:
    with pytest.raises(RequestError, match=name) as refused:
        rendered(CHATML, template_kwargs={name: "x"})
    assert refused.value.param == "chat_template_kwargs"


def test_a_template_that_does_not_parse_is_the_models_fault() -> None:
    with pytest.raises(ModelError, match="chat template"):
        ChatTemplate("{% for %}")


def test_a_model_without_a_template_gets_a_plain_transcript() -> None:
    template = ChatTemplate.from_bundle(bundle_of().pack())
    messages = [{"role": "system", "content": "Be brief."}, user("hi")]
    assert template.render(messages) == "system: Be brief.\n\nuser: hi\n\nassistant:"


def test_a_bundle_brings_template_and_tokens() -> None:
    bundle = bundle_of(chat_template="{{ bos_token }}{{ messages[0].content }}", bos_token="<s>")
    assert ChatTemplate.from_bundle(bundle.pack()).render([user("hi")]) == "<s>hi"
