"""The answers on one connection, read as an ordinary client's parser reads them."""

from dataclasses import dataclass, field

import httptools


@dataclass
class Seen:
    """One final answer; interim ones are passed over."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)  # names in lower case
    body: bytes = b""
    whole: bool = False

    @property
    def closes(self) -> bool:
        return (b"connection", b"close") in self.headers


class AnswerStream:
    """Fed with what comes, it raises on anything that is not HTTP."""

    def __init__(self) -> None:
        self.answers: list[Seen] = []
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    @property
    def whole(self) -> int:
        return sum(answer.whole for answer in self.answers)

    # ------------------------------------------------------------ from the parser

    def on_message_begin(self) -> None:
        self.answers.append(Seen())

    def on_header(self, name: bytes, value: bytes) -> None:
        self.answers[-1].headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.answers[-1].status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.answers[-1].body += data

    def on_message_complete(self) -> None:
        self.answers[-1].whole = True
        if self.answers[-1].status < 200:
            self.answers.pop()
