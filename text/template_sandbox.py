"""Runs the templates that come with models: they reach nothing outside, and they end."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import Template, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from radixgate.errors import RequestError

# The name under which a rendering's Steps stand among the template's variables.
STEPS = "radixgate_steps"
# What stands behind each loop's items, as a filter: a call in a template takes four times as long.
_COUNTED = "radixgate_counted"
_DICT_ATTRIBUTES = frozenset(dir(dict))


class Steps:
    """Counts the loop turns and calls of one rendering."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def take(self) -> None:
        """One more. Raises RequestError once the limit is passed."""
        self._left -= 1
        if self._left < 0:
            self._refuse()

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """The same items, each one a step."""
        for item in items:
            self._left -= 1
            if self._left < 0:
                self._refuse()
            yield item

    def _refuse(self) -> None:
        raise RequestError(
            f"rendering takes over {self._limit} steps; send fewer messages", param="messages"
        )


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Jinja as Hugging Face sets it up for chat templates, with every loop and call metered."""

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
        )
        self.filters["tojson"] = to_json
        self.filters[_COUNTED] = _counted

    def compile_metered(self, source: str) -> Template:
        """Compile once, render often with a `Steps` under STEPS. Raises jinja2.TemplateError."""
        tree = self.parse(source)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _COUNTED, [], [], None, None)
        tree.set_environment(self)
        # Plain, as they are gone through for each rendering; jinja's own are a chain of two.
        return Template.from_code(self, self.compile(tree), dict(self.globals))

    def getattr(self, obj: object, attribute: str) -> object:
        """As jinja has it: a field that is no attribute of a dictionary is looked up as its key.
        Here without the exception in between, as nearly all that templates read is such a field.
        """
        if type(obj) is dict and attribute in obj and attribute not in _DICT_ATTRIBUTES:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call(__self, __context: Context, __obj: object, *args: object, **kwargs: object) -> object:
        """Every call in a template comes through here; macros that call themselves do, too."""
        __context[STEPS].take()
        return super().call(__context, __obj, *args, **kwargs)


@pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    steps: Steps = context[STEPS]
    steps.take()
    return steps.counted(items)


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
