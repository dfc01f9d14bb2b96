"""What the first failure of each class said: why a run failed, where it is printed.

What pydantic and serde quote of a request is cut; what another server repeats of it in its message,
or in text that is no JSON, is shown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from radixgate.analysis.records import ABANDONED, RequestRecord

_CHARACTERS = 200
# Details are cut, so a JSON body of an error may have no end.
_MESSAGE = re.compile(r'"(?:message|msg|detail|error)"\s*:\s*"((?:[^"\\]|\\.)*)')
# Where validators quote what they were sent, which may be the prompt.
_QUOTED = re.compile(r"""["']input["']\s*:|\binput_value\s*=""")
# As serde, in servers written in Rust: `invalid type: string "the prompt", expected a sequence`.
# Quotes within have a backslash before them. Without its end, all is cut.
_INVALID = re.compile(
    r"""(\binvalid\s(?:type|value):\sstring\s)(?:.*(?<!\\)"(?=,\sexpected\s)|.*)""", re.DOTALL
)
# The same of what is none of a list, in backquotes; those within have nothing before them, so it is
# cut up to the last that may be the end. A variant is a value, cut even where it looks like a name;
# a field's name is what somebody wants to read, and shown if it is one.
_UNKNOWN = re.compile(
    r"""(\bunknown\s(?!field\s`[\w.-]{1,64}`,\s)(?:variant|field)\s)"""
    r"""(?:.*`(?=,\s(?:expected\s(?:one\sof\s)?`|there\sare\sno\s))|.*)""",
    re.DOTALL,
)


def first_messages(records: Sequence[RequestRecord]) -> Mapping[str, str]:
    """By class of failure, at most 200 characters; a class that said nothing readable is left out.

    Of a body of JSON, or an event with one, only its message is taken: the rest may repeat the
    prompt.
    """
    found: dict[str, str] = {}
    for record in records:
        if record.failure in (None, ABANDONED) or record.failure in found:
            continue
        if message := _readable(record.failure_detail):
            found[record.failure] = message
    return found


def failure_lines(records: Sequence[RequestRecord]) -> Iterator[str]:
    """One line a class, most frequent first: how many, and what the first of them said."""
    counts = Counter(
        record.failure for record in records if record.failure not in (None, ABANDONED)
    )
    messages = first_messages(records)
    for failure, count in counts.most_common():
        message = messages.get(failure, "") if failure else ""
        yield f"{failure}: {count}{f', the first: {message}' if message else ''}"


def _readable(detail: str) -> str:
    text = detail.strip()
    if text.startswith(("{", "[", "data:", "event:")):
        told = _MESSAGE.search(text)
        text = told[1].replace('\\"', '"').replace("\\n", " ") if told else ""
    text = _INVALID.sub(r'\1"..."', _QUOTED.split(text)[0])
    text = _UNKNOWN.sub(r"\1`...`", text)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 3] + "..."
