"""A fleet whose decisions are noted, and a log of them as a gateway writes it."""

import random
from collections.abc import Sequence
from pathlib import Path

from books import Books, ask, report
from clocks import FakeClock
from radixgate.fleet.decision_lines import Line, decode_line
from radixgate.fleet.journal import Journal, Note
from radixgate.fleet.lease import Lease, Outcome
from radixgate.fleet.rule import Rule
from radixgate.policies.registry import PolicyConfigs, make_policy

RUN = bytes(range(16))
SEED = 11


class NotedFleet:
    """Books with a journal; the clock moves a tenth of a second a request."""

    def __init__(
        self,
        policy: str,
        names: Sequence[str] = ("a", "b", "c"),
        configs: PolicyConfigs | None = None,
        run: bytes = RUN,
    ) -> None:
        self.notes: list[Note] = []
        configs = configs or PolicyConfigs()
        made = make_policy(policy, FakeClock(), random.Random(SEED), configs)
        self.books = Books(*names, policy=made, seed=5)
        rule = Rule.of(policy, configs, SEED)
        clock = self.books.clock
        self.journal = Journal(self.notes.append, clock, rule, run=run, epoch_s=1e9)
        self.books.fleet.journal = self.journal

    def lines(self) -> list[Line]:
        return [decode_line(note.encode()) for note in self.notes]

    def write(self, path: Path) -> Path:
        path.write_bytes(b"".join(note.encode() for note in self.notes))
        return path

    def lease(self, text: str) -> Lease:
        self.books.clock.advance(0.1)
        return self.books.fleet.lease(ask(text))

    def busy_day(self, requests: int, seed: int = 3) -> None:
        """Conversations over one system prompt, ended in any order, with a report now and then."""
        rng = random.Random(seed)
        talks = [f"system prompt {'x' * 40} {number} " for number in range(6)]
        running: list[Lease] = []
        for _ in range(requests):
            talk = rng.randrange(len(talks))
            talks[talk] += "and more "
            running.append(self.lease(talks[talk]))
            if rng.random() < 0.3:
                running[-1].first_output()
            if rng.random() < 0.1:
                name = running[-1].worker.id
                load = report(running=rng.randrange(4), kv_tokens_used=900, kv_tokens_total=1_000)
                self.books.fleet.report_load(name, load)
            while len(running) > 8 or (running and rng.random() < 0.4):
                running.pop(rng.randrange(len(running))).close(Outcome.OK, rng.randrange(40))
