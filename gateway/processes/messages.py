"""What a gateway's parent process and its children say to each other, on their private channel."""

from typing import Literal

import msgspec

from radixgate.fleet.identity import WorkerIdentity, WorkerState
from radixgate.fleet.news import News
from radixgate.gateway.asking.stored_responses import StoredResponse
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.keys_file import KeyEntry

Kind = Literal["counter", "gauge", "histogram"]


class SetUp(msgspec.Struct, frozen=True, tag=True):
    """To a child, first: who it is, and what it goes by. The keys are those the parent has read."""

    index: int
    settings: GatewaySettings  # of the whole gateway; the port is the one really taken
    keys: list[KeyEntry]


class Adopt(msgspec.Struct, frozen=True, tag=True):
    """Go by these settings from now on."""

    seq: int
    settings: GatewaySettings
    keys: list[KeyEntry]
    policy_changed: bool


class WorkerIs(msgspec.Struct, frozen=True, tag=True):
    """A worker as it is now; the last word about it counts."""

    seq: int
    url: str
    api_key: str | None
    state: WorkerState
    incarnation: int  # another one is admitted cold
    identity: WorkerIdentity | None  # None: it has not said who it is
    returned: bool
    absent: bool  # and is not waited for


class WorkerGone(msgspec.Struct, frozen=True, tag=True):
    seq: int
    worker_id: str


class TellAll(msgspec.Struct, frozen=True, tag=True):
    """Tell what has not been told yet, and that all is."""

    seq: int


class Flushed(msgspec.Struct, frozen=True, tag=True):
    """The worker has dropped its cache."""

    seq: int
    worker_id: str


class Open(msgspec.Struct, frozen=True, tag=True):
    """Every worker has been told of: listen."""


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Soon take nothing more, let answers end, and end."""


class Told(msgspec.Struct, frozen=True, tag=True):
    """News of the siblings, both ways."""

    news: News


class ResponsesStored(msgspec.Struct, frozen=True, tag=True):
    """Responses that workers have stored, both ways. A reader that is behind misses them."""

    responses: list[StoredResponse]


class AskStored(msgspec.Struct, frozen=True, tag=True):
    """To the parent: pass on what the others have stored, and say when that is done."""

    number: int


class AllStored(msgspec.Struct, frozen=True, tag=True):
    """The answer to AskStored: what others had stored by then has been passed on."""

    number: int


class PeerGone(msgspec.Struct, frozen=True, tag=True):
    peer: int


class AskMetrics(msgspec.Struct, frozen=True, tag=True):
    number: int


class ExpectAbort(msgspec.Struct, frozen=True, tag=True):
    """End what no worker has: an order is about to go to workers, and what ends from now on may end
    by it, also where another process has told the worker. The answer is `Aborted`."""

    number: int
    order: int  # its number among orders
    rid: str | None
    prefix: bool


class AbortOver(msgspec.Struct, frozen=True, tag=True):
    """It has been given."""

    order: int
    taken: list[str]  # ids of workers that took it


class AskAbort(msgspec.Struct, frozen=True, tag=True):
    number: int
    rid: str | None
    prefix: bool


class Hello(msgspec.Struct, frozen=True, tag=True):
    """To the parent, first."""

    index: int


class Listens(msgspec.Struct, frozen=True, tag=True):
    """Connections are accepted from now on."""


class Admitted(msgspec.Struct, frozen=True, tag=True):
    """The child can send to this worker."""

    worker_id: str
    incarnation: int


class Seen(msgspec.Struct, frozen=True, tag=True):
    """All up to `seq` is in force, and all news from before it have been told."""

    seq: int


class CheckSoon(msgspec.Struct, frozen=True, tag=True):
    worker_id: str


class Standing(msgspec.Struct, frozen=True, tag=True):
    """How things are at the child."""

    waiting: int  # requests in its queue
    heard: list[str]  # workers that have sent something since the last one
    breakers: dict[str, str]  # those that are not closed


class Sample(msgspec.Struct, frozen=True, array_like=True):
    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """A metric family, as Prometheus has it."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample]


class MetricFamilies(msgspec.Struct, frozen=True, tag=True):
    """The answer to AskMetrics."""

    number: int
    families: list[Family]


class WorkerResult(msgspec.Struct, frozen=True):
    worker_id: str
    ok: bool
    message: str
    aborted: int | None


class Aborted(msgspec.Struct, frozen=True, tag=True):
    """The answer to ExpectAbort and AskAbort: what no worker had, and what workers said."""

    number: int
    held: int
    results: list[WorkerResult]


ToChild = (
    SetUp
    | Adopt
    | WorkerIs
    | WorkerGone
    | TellAll
    | Flushed
    | Open
    | Drain
    | Told
    | ResponsesStored
    | AllStored
    | PeerGone
    | AskMetrics
    | ExpectAbort
    | AskAbort
    | AbortOver
)
ToParent = (
    Hello
    | Listens
    | Admitted
    | Seen
    | CheckSoon
    | Standing
    | Told
    | ResponsesStored
    | AskStored
    | MetricFamilies
    | Aborted
)
