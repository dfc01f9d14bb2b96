"""The engine's thread, and the one door through which the servers reach it."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor

import torch

from radixgate.clock import Clock
from radixgate.errors import NoWorkerAvailable, RadixgateError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent
from radixgate.worker.engine.core import EngineCore
from radixgate.worker.engine.stats import EngineStats
from radixgate.worker.requests.outbox import Delivery, Sink, StepOutbox
from radixgate.worker.requests.rids import Rids

__all__ = ["Engine", "EngineStats", "Sink"]

Command = Callable[[EngineCore], None]

# Steps whose outputs the loop has not taken yet. Beyond it the engine waits: a loop that has
# stalled must not find a mountain when it comes back.
_MAX_UNDELIVERED = 64
_log = logging.getLogger(__name__)


def _ignore(*_: object) -> None:
    return None


class Engine:
    """Runs an EngineCore in a thread of its own; every method belongs to the loop's thread.

    Commands are done between two steps, in order. Replies come through `Sink.deliver`, on the
    loop's thread, once a step with everything. A sink that has submitted must be detached when it
    is done with; from then on it hears nothing more.

    Who listens to the cache sets `on_kv` and `on_cleared` before `start`; `on_load` is called
    whenever `stats` may have changed.
    """

    def __init__(
        self,
        core: EngineCore,
        clock: Clock,
        *,
        threads: int | None = None,
        line: Executor | None = None,
    ) -> None:
        """`threads` of the forward pass; None leaves it to torch. `line`: where the core computes,
        to be shut down with the engine; None: in the engine's thread."""
        self.on_kv: Callable[[Sequence[KvEvent]], None] = _ignore
        self.on_cleared: Callable[[], None] = _ignore
        self.on_load: Callable[[], None] = _ignore
        self._core = core
        self._clock = clock
        self._threads = threads
        self._line = line
        self._stats = core.stats()
        self._rids = Rids()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # Shared with the engine's thread, under the lock of `_wake`. Commands are bounded by the
        # live requests: one submit and one abort each, and the credit their readers earn.
        self._wake = threading.Condition()
        self._commands: list[Command] = []
        self._undelivered = 0
        self._stopping = False

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to take steps. Call with the loop running that deliveries shall come on."""
        assert self._thread is None, "started twice"
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every request as failed, and the thread with them. Blocks for two passes at most.

        The last replies are delivered after it, when the loop goes on.
        """
        if self._thread is None:
            return
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """False before `start`, after `stop`, and after an error there was no going on from."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping

    # ------------------------------------------------------------------ requests

    def submit(self, sink: Sink, submit: pb.Submit) -> None:
        """Take up a request. Whatever is wrong with it, the sink hears it as a Refused."""
        try:
            if not self.alive:
                raise NoWorkerAvailable("the engine is not running")
            self._rids.add(sink, submit.handle, submit.rid)
        except RadixgateError as error:
            self._refuse_soon(sink, submit.handle, error)
            return
        self._command(lambda core: core.submit(sink, submit))

    def add_credit(self, sink: Sink, handle: int, tokens: int) -> None:
        """Let `tokens` more be emitted, all choices together."""
        self._command(lambda core: core.add_credit(sink, handle, tokens))

    def abort(self, sink: Sink, handle: int) -> None:
        """End a request with reason ABORT, in whatever state it is. Harmless if it has ended."""
        self._command(lambda core: core.abort(sink, handle, "aborted by the client"))

    def abort_rid(self, rid: str, *, prefix: bool = False) -> int:
        """Abort who has this rid, or with `prefix` all whose rid begins so; how many those are."""
        found = self._rids.find(rid, prefix=prefix)
        for sink, handle in found:
            self.abort(sink, handle)
        return len(found)

    def abort_all(self) -> int:
        """Abort every live request; how many those are."""
        self._command(lambda core: core.abort_all("aborted by the operator"))
        return len(self._rids)

    def detach(self, sink: Sink) -> None:
        """The sink hears nothing from now on, and what it still has running is aborted."""
        if self._rids.knows(sink):
            self._rids.leave(sink)
            self._command(lambda core: core.detach(sink))

    def flush(self) -> Awaitable[tuple[bool, str]]:
        """Drop every cached prefix, if nobody runs or waits: whether it was done, and why not."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[bool, str]] = loop.create_future()
        if not self.alive:
            done.set_result((False, "the engine is not running"))
            return done

        def command(core: EngineCore) -> None:
            result = core.flush()
            # What the flush changed is told before its caller goes on.
            self._hand_over()
            self._on_loop(lambda: _resolve(done, result))

        self._command(command)
        return done

    def stats(self) -> EngineStats:
        """As of the last step that was delivered."""
        return self._stats

    # ------------------------------------------------------------------ the loop's side

    def _command(self, command: Command) -> None:
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def _refuse_soon(self, sink: Sink, handle: int, error: RadixgateError) -> None:
        outbox = StepOutbox()
        outbox.refuse(sink, handle, error)
        delivery = outbox.take(())
        assert delivery is not None
        for receiver, batch in delivery.batches:
            asyncio.get_running_loop().call_soon(receiver.deliver, batch)

    def _deliver(self, delivery: Delivery | None, stats: EngineStats) -> None:
        self._stats = stats
        try:
            if delivery is not None:
                self._tell(delivery)
            self.on_load()
        except Exception:
            _log.exception("a listener failed")
        finally:
            with self._wake:
                self._undelivered -= 1
                self._wake.notify()

    def _tell(self, delivery: Delivery) -> None:
        if delivery.cleared:
            self.on_cleared()
        if delivery.kv_events:
            self.on_kv(delivery.kv_events)
        for sink, handle in delivery.ended:
            self._rids.ended(sink, handle)
        for sink, batch in delivery.batches:
            if not self._rids.knows(sink):
                continue  # it has left
            try:
                sink.deliver(batch)
            except Exception:
                _log.exception("a sink failed")

    def _bury(self) -> None:
        """The thread has ended: whoever has not heard the end of its request hears it now."""
        gone = NoWorkerAvailable("the engine has stopped")
        for sink, handle in self._rids.live():
            self._rids.ended(sink, handle)
            self._refuse_soon(sink, handle, gone)

    # ------------------------------------------------------------------ the engine's thread

    def _run(self) -> None:
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        try:
            self._take_steps()
            self._core.close()
            self._hand_over()
        except Exception:
            _log.critical("the engine has failed for good", exc_info=True)
            self._stopping = True
        if self._line is not None:
            self._line.shutdown()
        self._on_loop(self._bury)

    def _take_steps(self) -> None:
        busy = False
        while (commands := self._next_commands(wait=not busy)) is not None:
            try:
                for command in commands:
                    command(self._core)
                busy = self._core.step()
            except Exception as exc:
                _log.critical("a step failed", exc_info=True)
                self._core.recover(exc)
            self._hand_over()

    def _next_commands(self, *, wait: bool) -> list[Command] | None:
        """What is to be done before the next step; None: stop. Waits if nothing can go on."""
        with self._wake:
            if wait:
                self._wake.wait_for(
                    lambda: self._commands or self._stopping, timeout=self._until_deadline()
                )
            # Not while stopping: the loop's thread is then waiting for this one.
            self._wake.wait_for(lambda: self._undelivered < _MAX_UNDELIVERED or self._stopping)
            if self._stopping:
                return None
            commands, self._commands = self._commands, []
            return commands

    def _until_deadline(self) -> float | None:
        deadline = self._core.next_deadline_s()
        return None if deadline is None else max(0.0, deadline - self._clock.now())

    def _hand_over(self) -> None:
        delivery, stats = self._core.take(), self._core.stats()
        with self._wake:
            self._undelivered += 1
        self._on_loop(lambda: self._deliver(delivery, stats))

    def _on_loop(self, call: Callable[[], None]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            # The loop is closed: there is nobody left to tell.
            self._stopping = True


def _resolve(done: "asyncio.Future[tuple[bool, str]]", result: tuple[bool, str]) -> None:
    if not done.done():
        done.set_result(result)
