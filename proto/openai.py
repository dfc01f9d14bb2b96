"""OpenAI's chat and text completions: what a request may say."""

from array import array
from collections.abc import Mapping, Sequence

import msgspec

from radixgate.errors import RequestError
from radixgate.proto import openai_answer, unsupported
from radixgate.proto.continuous_usage import continuous
from radixgate.proto.fields import Fields, as_token_ids, is_number, kind_of
from radixgate.proto.generation import Encoder, GenerationRequest, Prompt
from radixgate.proto.routing_text import message_bytes
from radixgate.proto.sampling_fields import openai_sampling

COMPLETION_MAX_TOKENS = 16  # OpenAI's default for text completions; chat has none
MAX_PROMPTS = 1024
FEW_PARTS = 256  # messages, tools and what messages list: a rendering takes 1 to 4 us each


class ChatPrompt(msgspec.Struct, frozen=True, gc=False):
    """Messages that the model's chat template renders."""

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[object] | None = None
    template_kwargs: Mapping[str, object] | None = None
    field: str = "messages"

    @property
    def written_as_ids(self) -> bool:
        return False

    def text(self, encoder: Encoder) -> str:
        return encoder.render_messages(
            self.messages, tools=self.tools, template_kwargs=self.template_kwargs
        )

    @property
    def rendered_quickly(self) -> bool:
        values = () if self.template_kwargs is None else self.template_kwargs.values()
        if not all(value is None or isinstance(value, bool | str) for value in values):
            return False  # of a number or a list a template may make any length
        parts = len(self.messages) + len(self.tools or ())
        if parts <= FEW_PARTS:
            parts += sum(map(_listed, self.messages))
        return parts <= FEW_PARTS

    def token_ids(self, encoder: Encoder, text: str) -> "array[int]":
        return encoder.encode_rendered(text)

    def routing_bytes(self) -> bytes:
        return message_bytes(self.messages, self.tools)


class TextPrompt(msgspec.Struct, frozen=True, gc=False):
    """Plain text; special tokens in it are read as such."""

    written: str
    field: str = "prompt"

    @property
    def written_as_ids(self) -> bool:
        return False

    def text(self, encoder: Encoder) -> str:
        return self.written

    @property
    def rendered_quickly(self) -> bool:
        return True

    def token_ids(self, encoder: Encoder, text: str) -> "array[int]":
        return encoder.encode_text(text)

    def routing_bytes(self) -> bytes:
        return self.written.encode("utf-8", "surrogatepass")


class IdsPrompt(msgspec.Struct, frozen=True, gc=False):
    """Token ids as they are."""

    ids: "array[int]"
    field: str = "prompt"

    @property
    def written_as_ids(self) -> bool:
        return True

    def text(self, encoder: Encoder) -> str:
        return ""

    @property
    def rendered_quickly(self) -> bool:
        return True

    def token_ids(self, encoder: Encoder, text: str) -> "array[int]":
        return self.ids

    def routing_bytes(self) -> bytes:
        return self.ids.tobytes()


def _listed(message: Mapping[str, object]) -> int:
    """Parts of its content, calls of tools."""
    return sum(len(value) for value in message.values() if isinstance(value, list))


def parse_chat(body: Mapping[str, object]) -> GenerationRequest:
    """The body of `/v1/chat/completions`. Raises RequestError naming the field at fault."""
    fields = Fields(body)
    _refuse_unsupported(fields, unsupported.CHAT)
    if fields.flag("add_generation_prompt") is False:
        raise fields.refuse("add_generation_prompt", "false is not supported yet")
    return _request(fields, (_chat_prompt(fields),), openai_answer.chat, max_tokens=None)


def chat_prompt(body: Mapping[str, object]) -> ChatPrompt:
    """That of a body of which all but the messages and tools is known to be good. Raises as
    `parse_chat`."""
    return _chat_prompt(Fields(body))


def _chat_prompt(fields: Fields) -> ChatPrompt:
    return ChatPrompt(_messages(fields), _tools(fields), fields.mapping("chat_template_kwargs"))


def parse_completion(body: Mapping[str, object]) -> GenerationRequest:
    """The body of `/v1/completions`: a text, token ids, or an array of either. Token ids may have
    been read into an `array`, as many are."""
    fields = Fields(body)
    _refuse_unsupported(fields, unsupported.OPENAI)
    echo = fields.flag("echo") or False
    if fields.text("suffix"):
        raise fields.refuse("suffix", "is not supported: the model does not fill in the middle")
    best_of = fields.integer("best_of")
    if best_of is not None and best_of != (fields.integer("n") or 1):
        raise fields.refuse("best_of", "other than n is not supported yet")
    prompts = _prompts(fields)
    return _request(
        fields, prompts, openai_answer.completion, max_tokens=COMPLETION_MAX_TOKENS, echo=echo
    )


def _request(
    fields: Fields,
    prompts: Sequence[Prompt],
    answer: openai_answer.AnswerForm,
    *,
    max_tokens: int | None,
    echo: bool = False,
) -> GenerationRequest:
    # With an echo no new tokens at all make sense: the prompt is scored.
    least = 0 if echo else 1
    sampling = openai_sampling(fields, max_tokens=max_tokens, least_tokens=least)
    logprobs = answer.read_logprobs(fields)
    if logprobs is not None:
        sampling.top_logprobs = logprobs
        if echo:
            sampling.logprob_start = 0
    stream = fields.flag("stream") or False
    options = fields.inner("stream_options")
    usage = options.flag("include_usage") or False
    always = options.flag("continuous_usage_stats") or False
    rid = fields.text("rid") or None
    if rid is not None and len(prompts) > 1:
        raise RequestError(f"rid names one request; there are {len(prompts)} prompts", param="rid")
    renderer = openai_answer.renderer(
        answer,
        stream=stream,
        include_usage=usage,
        choices=sampling.n or 1,
        echoes=[_echo(prompt) for prompt in prompts] if echo else (),
    )
    return GenerationRequest(
        prompts=prompts,
        sampling=sampling,
        stream=stream,
        renderer=continuous(renderer) if stream and always else renderer,
        model=fields.text("model"),
        rids=() if rid is None else (rid,),
        salt=fields.text("cache_salt") or fields.text("extra_key"),
        priority=fields.priority(),
        session=fields.text("session_id") or fields.text("user"),
    )


def _refuse_unsupported(fields: Fields, names: Mapping[str, str]) -> None:
    unsupported.refuse_unsupported(fields, names)
    form = fields.inner("response_format").text("type")
    if form not in (None, "text"):
        raise fields.refuse("response_format", f"of type {form!r} is not supported yet")
    choice = fields.raw("tool_choice")
    if choice not in (None, "none", "auto"):
        raise fields.refuse("tool_choice", "other than none and auto is not supported yet")
    if fields.text("lora_path"):
        raise fields.refuse("lora_path", "is not supported yet: there are no adapters")


def _messages(fields: Fields) -> list[dict[str, object]]:
    messages = fields.items("messages")
    if not messages:
        raise RequestError("messages must be an array with at least one message", param="messages")
    return [_message(message, place) for place, message in enumerate(messages)]


def _message(message: object, place: int) -> dict[str, object]:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if role and isinstance(role, str) and isinstance(content, str):
            return message  # as a rule
    where = f"messages[{place}]"
    if not isinstance(message, dict):
        raise RequestError(f"{where} must be an object, not {kind_of(message)}", param=where)
    if not Fields(message, where).text("role"):
        raise RequestError(f"{where}.role must be a string", param=f"{where}.role")
    _check_content(message.get("content"), f"{where}.content")
    return message


def _check_content(content: object, where: str) -> None:
    """A text, null (a tool call has none), or parts that are texts."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RequestError(
            f"{where} must be a string or an array of parts, not {kind_of(content)}", param=where
        )
    for place, part in enumerate(content):
        inner = f"{where}[{place}]"
        if not isinstance(part, dict):
            raise RequestError(f"{inner} must be an object, not {kind_of(part)}", param=inner)
        fields = Fields(part, inner)
        if fields.text("type") != "text":
            raise fields.refuse("type", f"{part.get('type')!r:.40} is not supported: only text is")
        if fields.text("text") is None:
            raise RequestError(f"{inner}.text must be a string", param=f"{inner}.text")


def _tools(fields: Fields) -> list[object] | None:
    tools = fields.items("tools") or []
    for place, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise RequestError(f"tools[{place}] must be an object", param=f"tools[{place}]")
    if fields.raw("tool_choice") == "none":
        return None
    return tools or None


def _prompts(fields: Fields) -> tuple[Prompt, ...]:
    value = fields.raw("prompt")
    if isinstance(value, str):
        return (TextPrompt(value),)
    if isinstance(value, array):
        return (IdsPrompt(value),)
    if not isinstance(value, list):
        raise fields.wrong("prompt", "a string, an array of strings, or an array of token ids")
    if not value:
        raise RequestError("prompt is empty", param="prompt")
    are_ids = is_number(value[0])  # 2.0 is an id, too
    if len(value) > MAX_PROMPTS and not are_ids:
        raise RequestError(f"at most {MAX_PROMPTS} prompts, not {len(value)}", param="prompt")
    if are_ids:
        return (IdsPrompt(as_token_ids(value, "prompt")),)
    prompts: list[Prompt] = []
    for place, item in enumerate(value):
        if isinstance(item, str):
            prompts.append(TextPrompt(item))
        elif isinstance(item, list):
            prompts.append(IdsPrompt(as_token_ids(item, f"prompt[{place}]")))
        else:
            raise RequestError(
                f"prompt[{place}] must be a string or an array of token ids, not {kind_of(item)}",
                param="prompt",
            )
    return tuple(prompts)


def _echo(prompt: Prompt) -> openai_answer.Echo:
    """How the prompt reads in front of its answer."""
    if isinstance(prompt, TextPrompt):
        return lambda token_bytes: prompt.written
    assert isinstance(prompt, IdsPrompt)
    return lambda token_bytes: b"".join(map(token_bytes, prompt.ids)).decode("utf-8", "replace")
