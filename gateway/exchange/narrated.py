"""Requests that are told of: begun like any other, and listened to on both sides."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.choice.told_choice import ToldChoice
from radixgate.gateway.exchange.admission import OPEN, Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.detour import Detour
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.exchange.unbegun import not_begun
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.observe.story import Story, Teller


class Opening(Protocol):
    """Looks at a story before its request is read."""

    def open(self, story: Story) -> RequestHead:
        """The head that workers are to see."""
        ...


class NarratedForwarder(Forwarder):
    """Requests have a story each. About 10 us a request, and what is told."""

    def __init__(
        self,
        core: Core,
        detour: Detour | None,
        tellers: Sequence[Teller],
        opening: Opening | None = None,
    ) -> None:
        super().__init__(core, detour)
        self._tellers = tuple(tellers)
        self._opening = opening

    def generate(
        self,
        head: RequestHead,
        body: bytes,
        client: Client,
        admission: Admission = OPEN,
    ) -> Attempt:
        """As `Forwarder.generate`."""
        try:
            story = self._story(head, client, admission)
            plain = Forwarder(self._core_of(story), self._detour)
        except Exception:
            return not_begun(self._core, head, client, admission)
        story.runs(plain.generate(story.head, body, story, admission))
        return story

    def turned_away(
        self, head: RequestHead, client: Client, admission: Admission, outcome: FinalOutcome
    ) -> Client:
        """As `Forwarder.turned_away`, with a story of what it is answered."""
        story = self._story(head, client, admission)
        self._core_of(story).turned_away(outcome)
        return story

    def left(self, head: RequestHead, client: Client, admission: Admission) -> None:
        """As `Forwarder.left`; it is told."""
        story = self._story(head, client, admission)
        self._core_of(story).turned_away(FinalOutcome.CLIENT_DISCONNECT)
        story.cancel()

    def _core_of(self, story: Story) -> Core:
        """The story hears what is chosen, and how its request is counted."""
        choice = ToldChoice(self._core.choice, story)
        return replace(self._core, choice=choice, on_counted=story.counted)

    def _story(self, head: RequestHead, client: Client, admission: Admission) -> Story:
        if head.request_id is None:
            head = msgspec.structs.replace(head, request_id=self._core.request_ids.make())
        story = Story(self._tellers, self._core.clock, head, client, admission.arrived_at)
        story.tenant = admission.caller.tenant
        if self._opening is not None:
            story.head = self._opening.open(story)
        return story
