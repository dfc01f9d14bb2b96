"""Gateways that tell each other what they send, as the processes of one real gateway do."""

from collections.abc import Sequence
from functools import partial

from radixgate.fleet.fleet import Fleet
from radixgate.fleet.news import News
from radixgate.fleet.siblings import Siblings
from radixgate.loadgen.simulator.timeline import Timeline


class Sharing:
    """Brings each gateway's news to the others: what gathered in `delay_s`, all at once."""

    def __init__(self, delay_s: float, timeline: Timeline) -> None:
        self._delay_s = delay_s
        self._timeline = timeline
        self._siblings: list[Siblings] = []

    def join(self, fleet: Fleet) -> None:
        """One more gateway. Called before any worker is admitted to its fleet."""
        peer = len(self._siblings)
        siblings = Siblings(peer, partial(self._soon, peer))
        siblings.open(fleet)
        self._siblings.append(siblings)

    def _soon(self, peer: int) -> None:
        # Never at once: what is told is complete only after the call that has news.
        self._timeline.at(self._timeline.now() + self._delay_s, partial(self._tell, peer))

    def _tell(self, peer: int) -> None:
        news = self._siblings[peer].take()
        if news is not None:
            self._hear(self._siblings[:peer], news)
            self._hear(self._siblings[peer + 1 :], news)

    def _hear(self, others: Sequence[Siblings], news: News) -> None:
        for other in others:
            other.hear(news)
