"""An acting experiment: whose a request is, what trips it, and how it ends."""

from pathlib import Path

from books import Books, ask
from clocks import FakeClock
from experiment_parts import logbook, rail, records
from radixgate.analysis.experiments.records import ExperimentEnd, GuardrailTrip, RequestLine
from radixgate.fleet.fleet import Ask, Outcome
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.exchange.admission import OPEN
from radixgate.gateway.experiments.acting import CLOSING_S, Acting
from radixgate.gateway.experiments.guard import Guard
from radixgate.gateway.experiments.plan import Switches
from radixgate.gateway.experiments.units import session_of
from radixgate.gateway.experiments.watched_request import Label, WatchedRequest


class FakePlan:
    """Arm B from the start, until the test says otherwise."""

    def __init__(self) -> None:
        self.over = False
        self.block = 3
        self.switches: Switches | None = None
        self.arm = 1
        self.closed_after: list[str] = []
        self.told: list[str] = []

    def open(self) -> None: ...

    def step(self) -> None: ...

    def label(self, ask: Ask) -> Label:
        return Label(self.arm, self.block, washout=False)

    def close(self) -> None:
        self.closed_after = list(self.told)

    def state(self) -> dict[str, object]:
        return {}


class World:
    def __init__(self, folder: Path, *limits: float) -> None:
        self.clock = FakeClock()
        self.book = logbook(folder, self.clock)
        self.plan = FakePlan()
        rails = [rail("ttft_p95", limit, fewest=3) for limit in limits]
        self.acting = Acting(
            self.book,
            self.plan,
            Guard(rails, 60.0),
            session_of,
            lambda: self.plan.told.append("reverted"),
        )
        self.books = Books("a", reports_kv=False)

    def send(self, text: str = "hello") -> WatchedRequest:
        """Begun, and at a worker."""
        watcher: object = None
        request = WatchedRequest(
            watcher,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            b"",
            None,  # type: ignore[arg-type]
            OPEN,
        )
        self.acting.begun(request)
        request.ask = ask(text)
        request.lease = self.books.fleet.lease(request.ask)
        request.dispatched_at = self.clock.now()
        self.acting.dispatched(request)
        return request

    def end(
        self, request: WatchedRequest, ttft_s: float = 0.1, *, in_an_error: bool = False
    ) -> None:
        assert request.dispatched_at is not None
        request.streams, request.status = True, 200
        request.first_token_at = request.dispatched_at + ttft_s
        request.ended_at = request.last_piece_at = self.clock.now()
        request.outcome = Outcome.FAILED if in_an_error else Outcome.OK
        request.counts = AnswerCounts(5, 2, 3, error_status=500 if in_an_error else 0)
        self.acting.ended(request)

    def lines(self) -> list[RequestLine]:
        return [one for one in records(self.book) if isinstance(one, RequestLine)]


def test_a_request_is_of_the_arm_that_dispatched_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    request = world.send()
    world.clock.advance(0.5)
    world.plan.arm, world.plan.block = 0, 4
    world.clock.advance(9.0)
    world.end(request)
    (line,) = world.lines()
    assert (line.arm, line.block, line.t_dispatch_s) == ("B", 3, 0.0)
    assert (line.worker, line.cached_tokens, line.output_tokens) == ("a", 2, 3)
    assert line.e2e_s == 9.5


def test_a_stream_that_its_worker_ends_in_an_error_of_its_own_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    request = world.send()
    world.clock.advance(2.0)
    world.end(request, in_an_error=True)
    (line,) = world.lines()
    assert (line.outcome, line.e2e_s, line.tpot_s) == ("failed", None, None)


def test_who_is_turned_away_is_rejected_and_who_asks_wrongly_is_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)
    for status, asked in ((503, True), (400, False)):
        request = world.send()
        request.lease = request.dispatched_at = request.label = None
        request.ask = ask("x") if asked else None
        request.status, request.ended_at = status, world.clock.now()
        world.acting.ended(request)
    assert [line.outcome for line in world.lines()] == ["rejected"]


def test_a_guardrail_reverts_first_and_tells_why(tmp_path: Path) -> None:
    world = World(tmp_path, 2.0)
    for _ in range(3):
        world.end(world.send(), ttft_s=3.0)
    late = world.send()
    world.clock.advance(1.0)
    world.acting.step()
    assert world.acting.reason == "guardrail"
    assert world.plan.closed_after == ["reverted"], "nobody held went on under B"
    (trip,) = [one for one in records(world.book) if isinstance(one, GuardrailTrip)]
    assert (trip.metric, trip.value, trip.limit, trip.requests) == ("ttft_p95", 3.0, 2.0, 3)
    assert trip.block == 3
    # What B had dispatched is still recorded; what comes now is not.
    after = world.send()
    world.end(after)
    world.end(late)
    world.acting.step()
    assert world.acting.over
    assert len(world.lines()) == 4
    assert isinstance(records(world.book)[-1], ExperimentEnd)


def test_a_worker_that_hangs_trips_it_without_an_answer(tmp_path: Path) -> None:
    world = World(tmp_path, 2.0)
    world.end(world.send())
    hanging = [world.send() for _ in range(2)]
    world.clock.advance(2.5)
    world.acting.step()
    assert world.acting.reason == "guardrail"
    assert all(request.first_token_at is None for request in hanging)


def test_the_last_answers_are_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.send()
    world.plan.over = True
    world.acting.step()
    assert world.acting.reason == "finished"
    assert not world.acting.over
    world.clock.advance(CLOSING_S - 1.0)
    world.acting.step()
    assert not world.acting.over
    world.clock.advance(1.0)
    world.acting.step()
    last = records(world.book)[-1]
    assert isinstance(last, ExperimentEnd)
    assert (last.reason, last.detail) == ("finished", "1 requests had not ended")
