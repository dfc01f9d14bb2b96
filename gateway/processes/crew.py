"""The children of a gateway of several processes, as their parent knows and instructs them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from radixgate.fleet.fleet import WorkerState
from radixgate.fleet.news import News, NewsBox
from radixgate.gateway.asking.stored_responses import StoredResponse
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.processes.channel import Channel
from radixgate.gateway.processes.messages import (
    Aborted,
    AbortOver,
    Admitted,
    AllStored,
    AskAbort,
    AskMetrics,
    AskStored,
    CheckSoon,
    ExpectAbort,
    Family,
    Hello,
    Listens,
    MetricFamilies,
    PeerGone,
    ResponsesStored,
    Seen,
    Standing,
    TellAll,
    ToChild,
    Told,
    ToParent,
    WorkerIs,
)
from radixgate.gateway.processes.metric_families import lasting, summed
from radixgate.gateway.workers.roster import Member
from radixgate.log import fields

# A child that does not answer for so long is passed over: what it has not done, it does later.
_ANSWER_S = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Hand:
    """One child that has reported for duty."""

    index: int
    channel: Channel[ToParent]
    news: NewsBox = field(default_factory=NewsBox)
    seen: int = 0  # the last order that is in force there
    listens: bool = False
    admitted: dict[str, int] = field(default_factory=dict)  # incarnations by worker id
    waiting: int = 0
    breakers: Mapping[str, str] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)  # as last told


class Crew:
    """Tells all children, hears each, and passes their news on among them."""

    def __init__(
        self,
        *,
        welcome: Callable[[Hand], None],
        on_news: Callable[[News], None],
        on_gone: Callable[[int], None],
        on_check_soon: Callable[[str], None],
        on_standing: Callable[[Standing], None],
        on_stored: Callable[[StoredResponse], None],
    ) -> None:
        """`welcome`: a child has come and is to be told everything."""
        self._welcome = welcome
        self._on_news = on_news
        self._on_gone = on_gone
        self._on_check_soon = on_check_soon
        self._on_standing = on_standing
        self._on_stored = on_stored
        self._hands: dict[int, Hand] = {}
        self.seq = 0  # of the last order
        self._asked = 0
        self._aborts = 0
        self._answers: dict[tuple[int, int], asyncio.Future[MetricFamilies | Aborted]] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()  # each for two seconds at most
        self._retired: list[Family] = []  # what children that are gone have counted

    @property
    def listening(self) -> int:
        """How many children accept connections."""
        return sum(hand.listens for hand in self._hands.values())

    @property
    def waiting(self) -> int:
        """Requests in the children's queues."""
        return sum(hand.waiting for hand in self._hands.values())

    def breaker_of(self, worker_id: str) -> str | None:
        """The worst that a child has; None: all are closed."""
        states = {hand.breakers.get(worker_id) for hand in self._hands.values()}
        return next((one for one in ("open", "half_open", "ejected") if one in states), None)

    def order(self, message: Callable[[int], ToChild]) -> None:
        """To all; `settled` waits for it. `message` is given its number."""
        self.seq += 1
        self.broadcast(message(self.seq))

    def broadcast(self, message: ToChild) -> None:
        for hand in self._hands.values():
            hand.channel.send(message)

    async def settled(self) -> None:
        """Returns once every order given so far is in force at every child, or after 2 s."""
        seq = self.seq
        await self._until(lambda: all(hand.seen >= seq for hand in self._hands.values()))

    async def admitted(self, worker_id: str, incarnation: int) -> None:
        """Returns once every child can send to this worker, or after 2 s."""
        await self._until(
            lambda: all(
                hand.admitted.get(worker_id, 0) >= incarnation for hand in self._hands.values()
            )
        )

    async def all_listen(self, count: int) -> None:
        """Returns once so many children listen."""
        while self.listening < count:
            await self._change()

    async def families(self, own: list[Family]) -> list[Family]:
        """The metrics of all processes as those of one."""
        await self._ask(lambda number: AskMetrics(number))
        theirs = [hand.families for hand in self._hands.values()]
        return summed(own, [*theirs, self._retired])

    async def abort(self, order: AbortOrder) -> tuple[int, list[Aborted]]:
        """The order's number, for `abort_over`, and all answers. A worker that ends everything ends
        what other children run, too: so all of them expect it before one gives it."""
        self._aborts += 1
        which, rid, prefix = self._aborts, order.rid, order.prefix
        taken: list[str] = []
        try:
            answers = await self._ask(lambda number: ExpectAbort(number, which, rid, prefix))
            # From here on any worker may have taken it.
            taken = list({one for hand in self._hands.values() for one in hand.admitted})
            answers += await self._ask(lambda number: AskAbort(number, rid, prefix))
        except BaseException:  # whoever asked has left: nobody else would say that it is over
            self.abort_over(which, taken)
            raise
        return which, [answer for answer in answers if isinstance(answer, Aborted)]

    def abort_over(self, which: int, taken: list[str]) -> None:
        """`taken`: the ids of workers that took the order."""
        self.broadcast(AbortOver(which, taken))

    # ------------------------------------------------------------ from the channels

    def heard(self, channel: Channel[ToParent], message: ToParent) -> None:
        """A message of a child; the first one says which it is."""
        match message:
            case Hello():
                before = self._hands.get(message.index)
                if before is not None:
                    before.channel.close()
                    self.lost(before.channel)
                # It is told all that was ordered so far before it listens.
                hand = Hand(message.index, channel, seen=self.seq)
                self._hands[message.index] = hand
                channel.on_flow = lambda: self._pass_on(hand)
                self._welcome(hand)
                return
        hand_of = next((one for one in self._hands.values() if one.channel is channel), None)
        if hand_of is None:
            channel.close()
            return
        self._take(hand_of, message)

    def _take(self, hand: Hand, message: ToParent) -> None:
        match message:
            case Told():
                self._on_news(message.news)
                for other in self._hands.values():
                    if other is not hand:
                        other.news.add(message.news)
                        self._pass_on(other)
            case ResponsesStored():
                for stored in message.responses:
                    self._on_stored(stored)
                for other in self._hands.values():
                    if other is not hand and other.channel.flows:
                        other.channel.send(message)
            case AskStored():
                self._start(self._all_stored(hand, message.number))
            case Seen():
                hand.seen = max(hand.seen, message.seq)
                self._wake()
            case Admitted():
                hand.admitted[message.worker_id] = message.incarnation
                self._wake()
            case Listens():
                hand.listens = True
                self._wake()
            case CheckSoon():
                self._on_check_soon(message.worker_id)
            case Standing():
                hand.waiting, hand.breakers = message.waiting, message.breakers
                self._on_standing(message)
            case MetricFamilies():
                hand.families = message.families
                self._answer(hand, message.number, message)
            case Aborted():
                self._answer(hand, message.number, message)

    def lost(self, channel: Channel[ToParent]) -> None:
        """The child has ended, or is as good as that."""
        hand = next((one for one in self._hands.values() if one.channel is channel), None)
        if hand is None:
            return
        del self._hands[hand.index]
        self._retired = summed(self._retired, [lasting(hand.families)])
        for key in [key for key in self._answers if key[0] == hand.index]:
            self._answers.pop(key).cancel()
        for other in self._hands.values():
            other.news.forget(hand.index)
        self.broadcast(PeerGone(hand.index))
        self._on_gone(hand.index)
        self._wake()
        _log.info("a process has ended", extra=fields(process=hand.index))

    def _pass_on(self, hand: Hand) -> None:
        if not hand.channel.flows:
            return
        news = hand.news.take()
        if news is not None:
            hand.channel.send(Told(news))

    async def _all_stored(self, hand: Hand, number: int) -> None:
        """What the others had stored may be on its way, or not sent yet: it comes before their
        word that they have told all."""
        self.order(lambda seq: TellAll(seq))
        await self.settled()
        hand.channel.send(AllStored(number))

    # ------------------------------------------------------------ questions

    async def _ask(self, question: Callable[[int], ToChild]) -> list[MetricFamilies | Aborted]:
        """The answers of those that gave one in time."""
        self._asked += 1
        number, loop = self._asked, asyncio.get_running_loop()
        asked = {hand.index: loop.create_future() for hand in self._hands.values()}
        for index, answer in asked.items():
            self._answers[index, number] = answer
        self.broadcast(question(number))
        if asked:
            await asyncio.wait(asked.values(), timeout=_ANSWER_S)
        for index in asked:
            self._answers.pop((index, number), None)
        return [one.result() for one in asked.values() if one.done() and not one.cancelled()]

    def _answer(self, hand: Hand, number: int, answer: MetricFamilies | Aborted) -> None:
        waits = self._answers.get((hand.index, number))
        if waits is not None and not waits.done():
            waits.set_result(answer)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _wake(self) -> None:
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _until(self, done: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                while not done():
                    await self._change()
        except TimeoutError:
            _log.warning("a process is slow to follow")


def worker_is(member: Member, seq: int, state: WorkerState, *, returned: bool) -> WorkerIs:
    """A member as a child is told of it, in whatever state it shall be there."""
    return WorkerIs(
        seq=seq,
        url=member.address.url,
        api_key=member.api_key,
        state=state,
        incarnation=member.incarnation,
        identity=member.identity,
        returned=returned,
        absent=member.absent,
    )
