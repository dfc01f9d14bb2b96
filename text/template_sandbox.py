"""Runs the templates that come with models: they reach nothing outside, and they end."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import Template, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from radixgate.errors import RequestError

# The name under which a rendering's Steps stand among the template's variables.
STEPS = "radixgate_steps"


class Steps:
    """Counts the loop turns and calls of one rendering."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def take(self) -> None:
        """One more. Raises RequestError once the limit is passed."""
        self._left -= 1
        if self._left < 0:
            raise RequestError(
                f"rendering takes over {self._limit} steps; send fewer messages", param="messages"
            )

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """The same items, each one a step."""
        for item in items:
            self.take()
            yield item


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Jinja as Hugging Face sets it up for chat templates, with every loop and call metered."""

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
        )
        self.filters["tojson"] = to_json

    def compile_metered(self, source: str) -> Template:
        """Compile once, render often with a `Steps` under STEPS. Raises jinja2.TemplateError."""
        tree = self.parse(source)
        for loop in tree.find_all(nodes.For):
            counted = nodes.Getattr(nodes.Name(STEPS, "load"), "counted", "load")
            loop.iter = nodes.Call(counted, [loop.iter], [], None, None)
        tree.set_environment(self)
        return Template.from_code(self, self.compile(tree), self.make_globals(None))

    def call(__self, __context: Context, __obj: object, *args: object, **kwargs: object) -> object:
        """Every call in a template comes through here; macros that call themselves do, too."""
        __context[STEPS].take()
        return super().call(__context, __obj, *args, **kwargs)


class _GenerationBlock(Extension):
    """`{% generation %}` marks an answer for training; for a prompt it is only its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The `tojson` filter as models were trained with it: no HTML escapes, Unicode as it is."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
