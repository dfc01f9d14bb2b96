"""What was measured of one request: the input of every figure we print."""

from dataclasses import dataclass

# Requests that the client itself gave up, as a trainer does once it has enough rollouts. They are
# no failures of the server, and no part of what was offered to it.
ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Tokens that came together, stamped when the bytes that completed their event were read."""

    at_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as sent and answered. All times are seconds since the run began.

    A failed request keeps what was seen of it, and enters no latency and no token figure.
    """

    index: int
    session: str
    turn: int
    group: str | None
    t_intended_s: float  # when the schedule wanted it sent
    t_eligible_s: float  # the same, or when the turn before it was done, whichever is later
    t_dispatch_s: float  # when it was handed to the HTTP client
    t_first_byte_s: float | None  # the head of the answer; None: none came
    t_last_s: float  # the last token or finish reason; the failure, if it failed
    arrivals: tuple[Arrival, ...]
    output_tokens: int  # as the server counts them
    tokens_counted: bool  # False: the server gave a total only, shared out by length of text
    planned_prompt_tokens: int
    prompt_tokens: int | None  # None: the server did not say
    cached_tokens: int | None  # None: the server did not say
    worker_id: str | None  # None: no x-radixgate-worker header came
    finish_reason: str | None
    failure: str | None  # the class of the failure; None: it succeeded
    failure_detail: str = ""
    # Share of its prompt that earlier prompts of the schedule hold; None: not worked out.
    reusable_share: float | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None
