"""A foreign worker behind HTTP/1.1: what runs there, and how all of it is ended at once."""

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.aborted_answer import AbortedByOrder
from radixgate.gateway.attempt.attempt import Downstream, FrontRequest
from radixgate.gateway.settings.header_rules import Crosses, everything
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.expected_aborts import ExpectedAborts
from radixgate.gateway.workers.http_attempt import HttpAttempt, HttpWay


class HttpWorkerClient(HttpWay):
    """The way to one foreign worker, and what runs there: a `WorkerClient`."""

    def __init__(
        self,
        pool: UpstreamPool,
        connect_timeout_s: float,
        answer_headers: Crosses = everything,
    ) -> None:
        """`answer_headers`: which headers of answers clients get."""
        super().__init__(pool, connect_timeout_s, answer_headers)
        self.running: set[HttpAttempt] = set()  # each takes itself out
        self.expected = ExpectedAborts(self.running)

    def start(self, request: FrontRequest, downstream: Downstream, number: int) -> HttpAttempt:
        attempt = HttpAttempt(self, request, downstream, self.running.discard)
        self.running.add(attempt)
        if self.expected.standing:
            self.expected.begun(attempt)
        connection = self.pool.take_idle()
        if connection is None:
            attempt.dial()
        else:
            attempt.send(connection)
        return attempt

    def abort_unsent(self, order: AbortOrder) -> int:
        """End those that wait for a connection, as the worker has not heard of them; how many."""
        meant = [one for one in self.running if one.unsent and one.is_meant_by(order)]
        for attempt in meant:
            attempt.fail(AbortedByOrder("the request was aborted before it was sent"))
        return len(meant)

    def runs(self, order: AbortOrder) -> bool:
        """One that is meant has not ended."""
        return any(attempt.is_meant_by(order) for attempt in self.running)

    def close(self) -> None:
        for attempt in list(self.running):
            attempt.fail(attempt.ends_as(self.pool.failure("it was removed from the fleet")))
        self.pool.close()
