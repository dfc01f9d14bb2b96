"""Messages to a prompt, by the model's own template in a sandbox."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError

from radixgate.errors import ModelError, RequestError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.chat_messages import for_template
from radixgate.text.template_sandbox import STEPS, Steps, TemplateSandbox

# For a model without a template: a plain transcript, one paragraph a message. Base models continue
# it sensibly, and it needs no special token.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)

_OURS = frozenset(
    {
        "messages",
        "tools",
        "add_generation_prompt",
        "bos_token",
        "eos_token",
        "raise_exception",
        "strftime_now",
        "chat_template",
        STEPS,
    }
)


class ChatTemplate:
    """One model's template, compiled once; any thread may render with it.

    A message's content may be a list of text parts; they are joined without anything between, as
    templates that know parts do. No content (an assistant that only calls tools) is "".

    Rendering is bounded: `max_steps` loop turns and calls, `max_characters` of output. What comes
    from clients cannot pass these; the template itself is part of the model and trusted as its
    weights are, inside a sandbox that keeps it from attributes and from changing its input.
    """

    def __init__(
        self,
        source: str | None,
        bos: str | None = None,
        eos: str | None = None,
        *,
        max_characters: int = 16_000_000,
        max_steps: int = 200_000,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`source` None: PLAIN_TEMPLATE. Raises ModelError if it is no valid template."""
        self.source = PLAIN_TEMPLATE if source is None else source
        self._max_characters = max_characters
        self._max_steps = max_steps
        self._names = {"bos_token": bos or "", "eos_token": eos or ""}
        self._now = now
        try:
            self._template = TemplateSandbox().compile_metered(self.source)
        except TemplateError as exc:
            raise ModelError(f"chat template: {exc}") from exc

    @classmethod
    def from_bundle(cls, data: bytes) -> "ChatTemplate":
        """From the bytes that a worker streams. Raises ModelError."""
        bundle = TokenizerBundle.unpack(data)
        return cls(bundle.chat_template, bundle.bos_token, bundle.eos_token)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt's text. O(output), tens of microseconds for a short chat.

        `template_kwargs` are further names for the template (`enable_thinking`). Raises
        RequestError that names `messages`: a message of the wrong shape, one that the template
        refuses, a prompt over the bounds. It names `chat_template_kwargs` for a taken name.
        """
        kwargs = template_kwargs or {}
        if kwargs and (taken := sorted(_OURS & kwargs.keys())):
            raise RequestError(
                f"{', '.join(taken)} cannot be set by a request", param="chat_template_kwargs"
            )
        names = {
            **kwargs,
            **self._names,
            "messages": for_template(messages),
            "tools": list(tools) if tools else None,
            "add_generation_prompt": add_generation_prompt,
            "raise_exception": _raise_exception,
            "strftime_now": lambda form: self._now().strftime(form),
            STEPS: Steps(self._max_steps),
        }
        try:
            return self._bounded(names)
        except RequestError:
            raise
        except _Refused as exc:
            raise RequestError(
                f"the model's chat template refuses the messages: {exc}", param="messages"
            ) from exc
        except Exception as exc:  # a template is a program: on odd input it fails in any way
            raise RequestError(
                f"the model's chat template failed: {type(exc).__name__}: {exc}", param="messages"
            ) from exc

    def _bounded(self, names: dict[str, Any]) -> str:
        pieces: list[str] = []
        length = 0
        template = self._template
        # As its `generate` has it, less a frame for each piece, and the tracebacks it makes up.
        for piece in template.root_render_func(template.new_context(names)):
            length += len(piece)
            if length > self._max_characters:
                raise RequestError(
                    f"the rendered prompt is over {self._max_characters} characters; send less",
                    param="messages",
                )
            pieces.append(piece)
        return "".join(pieces)


class _Refused(TemplateError):
    """The template itself says that it has no form for such messages."""


def _raise_exception(message: str) -> None:
    raise _Refused(message)
