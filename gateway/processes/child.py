"""One of several processes that answer generations: it follows its parent in everything else.

    python -m radixgate.gateway.processes.child DIRECTORY INDEX

The directory holds the parent's two sockets, and only its owner can look into it.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path

import uvloop

from radixgate import log
from radixgate.clock import Clock, SystemClock
from radixgate.fleet.siblings import Siblings
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.data_path import DataPath, Rules
from radixgate.gateway.door import Door, Listening
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.observers import Observers
from radixgate.gateway.processes.abort_marks import AbortMarks
from radixgate.gateway.processes.admin_tunnel import Tunnel
from radixgate.gateway.processes.channel import Channel, child_end
from radixgate.gateway.processes.followed_workers import FollowedWorkers
from radixgate.gateway.processes.messages import (
    Aborted,
    AbortOver,
    Adopt,
    AllStored,
    AskAbort,
    AskMetrics,
    Drain,
    ExpectAbort,
    Flushed,
    Hello,
    Listens,
    MetricFamilies,
    Open,
    PeerGone,
    ResponsesStored,
    Seen,
    SetUp,
    Standing,
    TellAll,
    ToChild,
    Told,
    WorkerGone,
    WorkerIs,
    WorkerResult,
)
from radixgate.gateway.processes.metric_families import families_of
from radixgate.gateway.processes.stored_news import StoredNews
from radixgate.gateway.settings.share_of_limits import keys_share, share_of
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.reached import aborted_of
from radixgate.gateway.workers.roster import Roster
from radixgate.kept_heap import keep_heap
from radixgate.spare_collector import spare_collector

ADMIN_SOCKET = "admin.sock"
CHILDREN_SOCKET = "children.sock"
# News wait so long for company: a tenth of the time that a prompt needs at least.
_NEWS_S = 0.005
_STANDING_S = 0.2
_WHOLE_EVERY = 5  # standings; then loads are told whether they changed or not
# A worker that cannot be reached from here must not keep a process from listening.
_WORKERS_WITHIN_S = 5.0


class ChildProcess:
    """Set up by the parent's first message; ends with the channel to it, or when drained."""

    def __init__(self, setup: SetUp, channel: Channel[ToChild], directory: str) -> None:
        settings = share_of(setup.settings, setup.index)
        config, self._config = settings.config, settings.config
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._clock: Clock = SystemClock()
        self._rng = random.Random(config.seed)
        self._siblings = Siblings(setup.index, self._on_news)
        keys = keys_share(setup.keys, config.processes)
        rules = Rules(config, settings.rules, KeyRing.made(settings.rules.access, keys))
        own = own_policy(config.policy, settings.policies, self._clock, self._rng)
        self._path = DataPath(rules, own, self._clock, self._rng, config.processes)
        self._siblings.open(self._path.fleet)
        roster = Roster(self._path.fleet, self._path.factories, self._path.choice)
        self._workers = FollowedWorkers(roster, HealthRule.of(config), channel.send)
        self._marks = AbortMarks(roster, self._path.held, channel.send)
        self._path.serve(self._workers, rules)
        aims_s = settings.policies.slo.aims_s
        self.observers = Observers(settings.rules.observe, own.rule, self._clock, aims_s)
        self._path.observe(self.observers)
        self._stored_news = StoredNews(self._path.stored, channel)
        tls = settings.rules.tls.for_clients()
        at = Listening(config.host, config.port, config.max_payload_size, tls, shared=True)
        socket = str(Path(directory, ADMIN_SOCKET))
        self._door = Door(
            self._path, settings.rules.headers, lambda: Tunnel(socket), at, self._clock
        )
        self._said: Standing | None = None
        self._standings = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.drained = asyncio.Event()
        channel.on_flow = self._on_news
        self._loop.call_later(_STANDING_S, self._stand)

    def obey(self, message: ToChild) -> None:
        """One message of the parent."""
        # In the order of the day: news come by far the most often.
        match message:
            case Told():
                self._siblings.hear(message.news)
            case ResponsesStored() | AllStored():
                self._stored_news.hear(message)
            case PeerGone():
                self._siblings.gone(message.peer)
            case WorkerIs():
                self._workers.follow(message)
                self._seen(message.seq)
            case WorkerGone():
                self._workers.gone(message.worker_id)
                self._seen(message.seq)
            case TellAll():
                self._seen(message.seq)
            case Flushed():
                self._path.fleet.flushed(message.worker_id)
                self._seen(message.seq)
            case Adopt():
                self._adopt(message)
                self._seen(message.seq)
            case AskMetrics():
                families = families_of(self._path.metrics.collect())
                self._channel.send(MetricFamilies(message.number, families))
            case ExpectAbort():
                self._marks.expect(message)
            case AbortOver():
                self._marks.over(message.order, message.taken)
            case AskAbort():
                self._start(self._abort(message))
            case Open():
                self._start(self._open())
            case Drain():
                self._start(self._drain())
            case SetUp():
                raise ValueError("set up twice")

    async def stop(self) -> None:
        self._door.close()
        for member in self._workers.roster.members():
            self._workers.roster.drop(member)
        await asyncio.sleep(0)
        self.observers.close()

    # ------------------------------------------------------------ orders

    async def _open(self) -> None:
        await self._workers.settled(_WORKERS_WITHIN_S)
        await self._door.open()
        spare_collector()
        keep_heap()
        self._channel.send(Listens())

    async def _drain(self) -> None:
        config = self._config
        await self._door.drain(config.shutdown_accept_secs, config.shutdown_grace_period_secs)
        self.drained.set()

    def _adopt(self, order: Adopt) -> None:
        settings = share_of(order.settings, self._siblings.peer)
        config, self._config = settings.config, settings.config
        keys = keys_share(order.keys, config.processes)
        rules = Rules(config, settings.rules, KeyRing.made(settings.rules.access, keys))
        own = None
        if order.policy_changed:
            own = own_policy(config.policy, settings.policies, self._clock, self._rng)
        self._path.apply(rules, own)
        self._workers.rule = HealthRule.of(config)
        self._door.renew()

    async def _abort(self, asked: AskAbort) -> None:
        order = AbortOrder(asked.rid, prefix=asked.prefix)
        held = self._path.held.abort(order)
        owners = [one for one in self._workers.roster.members() if one.handle.runs(order)]
        results = await asyncio.gather(*(one.handle.abort_request(order) for one in owners))
        said = [
            WorkerResult(owner.address.id, result.ok, result.message, aborted_of(result))
            for owner, result in zip(owners, results, strict=True)
        ]
        self._channel.send(Aborted(asked.number, held, said))

    # ------------------------------------------------------------ told

    def _on_news(self) -> None:
        self._loop.call_later(_NEWS_S, self._tell)

    def _tell(self, *, whole: bool = False) -> None:
        # A parent that is behind gets them later; what waits is bounded, the oldest go.
        if not self._channel.flows:
            return
        news = self._siblings.take(whole=whole)
        if news is not None:
            self._channel.send(Told(news))

    def _seen(self, seq: int) -> None:
        self._tell()
        self._channel.send(Seen(seq))

    def _stand(self) -> None:
        self._loop.call_later(_STANDING_S, self._stand)
        self._standings += 1
        if self._standings % _WHOLE_EVERY == 0:
            self._tell(whole=True)
        roster, choice = self._workers.roster, self._path.choice
        heard = [one.address.id for one in roster.members() if one.handle.heard()]
        states = {one: choice.breaker_of(one) for one in roster.clients}
        breakers = {one: state for one, state in states.items() if state != "closed"}
        standing = Standing(self._path.metrics.read_waiting(), heard, breakers)
        if standing != self._said or heard:
            self._said = standing
            self._channel.send(standing)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _run(directory: str, index: int) -> int:
    loop = asyncio.get_running_loop()
    lost = asyncio.Event()
    made: asyncio.Future[ChildProcess] = loop.create_future()

    def on_message(channel: Channel[ToChild], message: ToChild) -> None:
        if made.done():
            made.result().obey(message)
        else:
            made.set_result(ChildProcess(_first(message), channel, directory))

    # Whoever wants to end the gateway speaks to the parent.
    for number in (signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, lambda: None)
    path = str(Path(directory, CHILDREN_SOCKET))
    _, channel = await loop.create_unix_connection(
        lambda: child_end(on_message, lambda _: lost.set()), path
    )
    channel.send(Hello(index))
    ended = asyncio.ensure_future(lost.wait())
    await asyncio.wait((ended, made), return_when=asyncio.FIRST_COMPLETED)
    if not made.done():
        return 1
    child = made.result()
    loop.add_signal_handler(signal.SIGTERM, lambda: child.obey(Drain()))
    loop.add_signal_handler(signal.SIGHUP, child.observers.reopen)
    drained = asyncio.ensure_future(child.drained.wait())
    await asyncio.wait((ended, drained), return_when=asyncio.FIRST_COMPLETED)
    await child.stop()
    return 0


def _first(message: ToChild) -> SetUp:
    assert isinstance(message, SetUp), "the first message says who we are"
    return message


def main(argv: list[str]) -> int:
    """Runs until the parent ends it. The exit code."""
    log.set_up()
    return uvloop.run(_run(argv[0], int(argv[1])))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Not by way of every thread's and library's farewell: nothing is left to be saved.
    os._exit(code)
