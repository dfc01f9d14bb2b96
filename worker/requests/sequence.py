"""One request and its choices: what is asked, and how far each output has come."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.sampling import SamplingParams
from radixgate.worker.cache.radix_node import Namespace, Node
from radixgate.worker.requests.logits import LogitsProcessor
from radixgate.worker.requests.outbox import Sink
from radixgate.worker.requests.output import LENGTH, End, OutputText


class Phase(Enum):
    """Where a sequence is; it moves on only through the scheduler."""

    HELD = auto()  # a further choice: waits until the first has computed the prompt
    WAITING = auto()  # for pages
    RUNNING = auto()  # has pages
    FINISHED = auto()


@dataclass(slots=True, eq=False)
class Request:
    """What one Submit asked for. Fixed up to `credit`, state from there on."""

    rid: str  # the client's name for it, for the log
    key: int  # a running number: order of arrival, and the key of its pending blocks
    sink: Sink
    handle: int
    number: int | None  # the gateway's for the request; None: it gave none
    sampling: SamplingParams
    seed: int
    namespace: Namespace
    prompt_tokens: int
    prior_tokens: int  # of output that was delivered elsewhere
    max_len: int  # tokens of prompt and output at which the output ends
    stop_ids: frozenset[int]  # tokens that end the output
    priority: int
    arrived_s: float
    deadline_s: float | None  # on the engine's clock; None: none
    return_text: bool
    credit: int  # tokens that may still be emitted, all choices together
    # The first position of the prompt whose log probability is still owed; from `prompt_tokens` on
    # none is.
    unscored: int
    # Of the prompt, found in the cache at the first admission; None: not admitted yet.
    cached_tokens: int | None = None
    pending: bool = False  # its blocks are announced and not settled
    heard: bool = False  # an item has gone out
    first_token: bool = False  # one of its choices has had it
    aborted: bool = False
    sequences: list["TokenSequence"] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        return all(sequence.phase is Phase.FINISHED for sequence in self.sequences)

    @property
    def to_be_scored(self) -> bool:
        """Log probabilities of the prompt are still owed."""
        return self.unscored < self.prompt_tokens

    @property
    def scoring(self) -> bool:
        """The prompt is computed and nothing is drawn."""
        return self.sampling.max_tokens == 0


@dataclass(frozen=True, slots=True)
class Found:
    """What the cache held of a sequence when it was last looked up."""

    version: int  # of the cache
    tokens: int  # whole pages
    node: Node | None  # where they end; None: its namespace holds nothing


@dataclass(frozen=True, slots=True)
class PageCopy:
    """The KV of the first `tokens` of page `source` goes to page `target`, before the next pass."""

    source: int
    target: int
    tokens: int


class TokenSequence:
    """The tokens of one choice, and the pages that hold the KV of the first `computed` of them.

    The last token has no KV until the step that computes what follows it.
    """

    __slots__ = (
        "admitted_s",
        "choice",
        "computed",
        "copy",
        "drawing",
        "found",
        "ids",
        "last_token_s",
        "node",
        "output",
        "owed",
        "pages",
        "passed_over",
        "phase",
        "planned",
        "prefill_end",
        "processors",
        "request",
        "retractions",
        "shared",
        "unsent",
    )

    def __init__(
        self,
        request: Request,
        choice: int,
        ids: "array[int]",
        output: OutputText,
        processors: Sequence[LogitsProcessor],
    ) -> None:
        self.request = request
        self.choice = choice
        self.ids = ids  # prompt, prior output, output
        self.output = output
        self.processors = processors
        self.phase = Phase.HELD
        self.computed = 0  # tokens with KV
        self.planned = 0  # tokens with KV once the passes begun or laid out are done
        self.drawing = 0  # tokens that those passes draw
        self.prefill_end = 0  # tokens that were there at admission; up to here it is prefill
        self.pages: list[int] = []  # the page table
        self.shared = 0  # of those, the first so many are the tree's, locked through `node`
        self.node: Node | None = None  # None: holds nothing
        self.copy: PageCopy | None = None  # counts as computed, and is due with the next chunk
        self.found: Found | None = None  # the last lookup while it waits; None: none that holds
        self.owed = 0  # prompt tokens still to be computed, as the load report counts them
        self.passed_over = 0
        self.retractions = 0
        self.unsent: pb.Item | None = None  # tokens that go out with later ones
        self.last_token_s: float | None = None  # None: it has had none
        self.admitted_s: float | None = None  # the first time

    @property
    def output_len(self) -> int:
        """Tokens of output, prior output included."""
        return len(self.ids) - self.request.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Tokens of output computed here."""
        return self.output_len - self.request.prior_tokens

    @property
    def output_ids(self) -> "array[int]":
        return self.ids[self.request.prompt_tokens :]

    @property
    def prefilling(self) -> bool:
        """Some of its prefill has no KV yet."""
        return self.computed < self.prefill_end

    @property
    def in_flight(self) -> bool:
        """A pass that computes some of it is laid out or begun, and has not been heard of."""
        return self.planned > self.computed

    @property
    def decodes(self) -> bool:
        """The next to be planned is a row that draws a further token."""
        if self.planned < self.prefill_end or self.request.scoring:
            return False
        return len(self.ids) + self.drawing < self.request.max_len

    @property
    def unscored(self) -> int:
        """The first position of the prompt whose log probability no pass is to find yet."""
        request = self.request
        if not self.in_flight:
            return request.unscored
        return max(request.unscored, min(self.planned + 1, request.prompt_tokens))

    @property
    def scores(self) -> bool:
        """The log probabilities of the prompt are its to find: the first choice does it for all."""
        return self.request.to_be_scored and self is self.request.sequences[0]

    @property
    def waits_for_credit(self) -> bool:
        """True: it gave way to others because it could not go on, and still cannot."""
        return self.retractions > 0 and self.request.credit <= 0

    @property
    def arrival(self) -> tuple[int, int, int]:
        """Sorts by priority, then by arrival."""
        return (-self.request.priority, self.request.key, self.choice)

    def begin(self) -> End | None:
        """Take up prior output; an End if there is nothing to add to it. O(prior tokens)."""
        request = self.request
        prompt, prior = self.ids[: request.prompt_tokens], self.output_ids
        end = self.output.begin(prompt, prior)
        if end is None and len(self.ids) >= request.max_len and not request.scoring:
            return LENGTH
        return end

    def append(self, token_id: int) -> tuple[str, End | None]:
        """A token was drawn: the text that comes out with it, and whether the choice ends."""
        self.ids.append(token_id)
        text, end = self.output.push(token_id)
        if end is None and len(self.ids) >= self.request.max_len:
            return text + self.output.finish(), LENGTH
        return text, end

    def check(self, page_size: int) -> None:
        """What must hold between two steps."""
        assert 0 <= self.shared <= len(self.pages)
        if self.phase is not Phase.RUNNING:
            assert not self.pages, f"a sequence that is {self.phase.name} has pages"
            assert self.node is None
            return
        assert self.node is not None
        assert self.shared * page_size <= self.computed, "shares pages that it never computed"
        assert self.computed <= self.planned <= len(self.ids) - 1 + self.drawing or (
            self.request.scoring
        ), "planned beyond what is known and what is being drawn"
        assert self.planned <= len(self.pages) * page_size, "KV without a page"
        assert self.computed < len(self.ids) or self.request.scoring
        assert len(set(self.pages)) == len(self.pages), "a page stands twice in a page table"
