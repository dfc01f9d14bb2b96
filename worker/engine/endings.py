"""How choices and requests end: by themselves, by order, or because something failed."""

from radixgate.clock import Clock
from radixgate.errors import RadixgateError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.replies import Replies
from radixgate.worker.engine.stats import EngineTally
from radixgate.worker.requests.live_requests import LiveRequests
from radixgate.worker.requests.output import End
from radixgate.worker.requests.sequence import Phase, Request, TokenSequence
from radixgate.worker.schedule.kv_changes import KvChanges
from radixgate.worker.schedule.scheduler import Scheduler


class Endings:
    """Each request ends once: its pages come back, its asker hears of it, and it is counted."""

    def __init__(
        self,
        scheduler: Scheduler,
        changes: KvChanges,
        live: LiveRequests,
        replies: Replies,
        tally: EngineTally,
        clock: Clock,
    ) -> None:
        self._scheduler = scheduler
        self._changes = changes
        self._live = live
        self._replies = replies
        self._tally = tally
        self._clock = clock

    def end(self, sequence: TokenSequence, end: End) -> None:
        """The choice ends without a further token."""
        # Of an output that breaks off, what is held back stays back: whoever goes on holds it too.
        text = sequence.output.finish() if end.status is None else ""
        self._replies.end(sequence, text, end)
        self.leave(sequence)

    def leave(self, sequence: TokenSequence) -> None:
        """The choice has ended and its asker has heard of it."""
        self._scheduler.remove(sequence)
        request = sequence.request
        if not request.finished:
            return
        self._changes.settle(request)
        self._live.remove(request)
        self._replies.over(request)
        self._tally.ended(request, self._clock.now())

    def abort(self, request: Request, message: str) -> None:
        """By order: what has been said so far is the answer."""
        self._break_off(request, End(pb.Finish.ABORT, message=message))

    def fail(self, request: Request, error: RadixgateError) -> None:
        """The worker is at fault. Who has heard nothing yet may well be answered by another."""
        if request.heard:
            self._break_off(
                request, End(pb.Finish.ABORT, message=error.message, status=error.status)
            )
            return
        request.aborted = True
        self._replies.refuse(request, error)
        for sequence in request.sequences:
            if sequence.phase is not Phase.FINISHED:
                self.leave(sequence)

    def _break_off(self, request: Request, end: End) -> None:
        request.aborted = True
        for sequence in request.sequences:
            if sequence.phase is not Phase.FINISHED:
                self.end(sequence, end)
