"""The files of one run: what was measured is written once, and every report is made from it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

import msgspec

from radixgate.analysis.balance import FleetPoll
from radixgate.analysis.records import Arrival, RequestRecord
from radixgate.analysis.validity import ClientHealth
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.reports.machine import machine
from radixgate.loadgen.workload_config import WorkloadConfig

RUN, REQUESTS, FLEET = "run.json", "requests.jsonl", "fleet.jsonl"
_FORMAT = 1
_DIGITS = 6

Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """How a run was made. Written last: a folder without it is not a finished run."""

    schedule_hash: str
    config: Mapping[str, Mapping[str, object]]  # by section; header values are not kept
    clients: Sequence[ClientHealth]
    machine: Mapping[str, object]
    started_at: str  # UTC, ISO 8601
    format: int = _FORMAT

    @property
    def bench(self) -> BenchConfig:
        """The settings of the run. Raises ConfigError if they are none of a bench."""
        names = {field.name for field in fields(BenchConfig)}
        try:
            told = self.config["bench"]
            known = {name: value for name, value in told.items() if name in names}
            known["request_rate"] = float(str(told["request_rate"]))
            return msgspec.convert(known, BenchConfig)
        except (KeyError, ValueError) as error:
            raise ConfigError(f"{RUN} has no settings of a bench: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its folder holds it."""

    info: RunInfo
    records: Sequence[RequestRecord]
    polls: Sequence[FleetPoll]


def run_info(
    sections: tuple[BenchConfig, WorkloadConfig, ArrivalConfig],
    schedule_hash: str,
    clients: Sequence[ClientHealth],
    started_at: str,
) -> RunInfo:
    """With the machine as it is now."""
    bench, workload, arrivals = sections
    told = asdict(bench)
    told["header"] = [item.partition("=")[0] + "=hidden" for item in bench.header]
    if not math.isfinite(bench.request_rate):
        told["request_rate"] = "inf"  # JSON has no infinity
    return RunInfo(
        schedule_hash=schedule_hash,
        config={"bench": told, "workload": asdict(workload), "arrivals": asdict(arrivals)},
        clients=clients,
        machine=machine(),
        started_at=started_at,
    )


def write_run(
    folder: Path, info: RunInfo, records: Iterable[RequestRecord], polls: Iterable[FleetPoll]
) -> None:
    """Make the folder and write the three files, times to the microsecond."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN).unlink(missing_ok=True)
    (folder / REQUESTS).write_bytes(b"".join(_line(_row(record)) for record in records))
    (folder / FLEET).write_bytes(
        b"".join(_line(asdict(poll) | {"at_s": round(poll.at_s, _DIGITS)}) for poll in polls)
    )
    encoded = msgspec.json.encode(info)
    (folder / RUN).write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def read_run(folder: Path) -> Run:
    """Raises ConfigError that names the file, and the line, that cannot be used."""
    info = _decoded(_bytes_of(folder / RUN), RunInfo, str(folder / RUN))
    if info.format != _FORMAT:
        raise ConfigError(f"{folder / RUN}: format {info.format}; this version reads {_FORMAT}")
    rows = _rows(folder / REQUESTS, _Row)
    _check_whole(folder, info, [row.index for row in rows])
    return Run(info, [_record(row) for row in rows], _rows(folder / FLEET, FleetPoll))


def _check_whole(folder: Path, info: RunInfo, indices: Sequence[int]) -> None:
    """Raises ConfigError for a request that stands twice, or that is not there."""
    seen: set[int] = set()
    for number, index in enumerate(indices, 1):
        if index in seen:
            raise ConfigError(f"{folder / REQUESTS}:{number}: index {index} stands a second time")
        seen.add(index)
    told = sum(client.requests for client in info.clients)
    if info.clients and told != len(indices):
        raise ConfigError(
            f"{folder / REQUESTS} has {len(indices)} requests, and the run had {told}: lines are"
            " missing"
        )


class _Row(msgspec.Struct):
    """A record with its arrivals as pairs of time and tokens."""

    index: int
    session: str
    turn: int
    group: str | None
    t_intended_s: float
    t_eligible_s: float
    t_dispatch_s: float
    t_first_byte_s: float | None
    t_last_s: float
    output_tokens: int
    tokens_counted: bool
    planned_prompt_tokens: int
    prompt_tokens: int | None
    cached_tokens: int | None
    worker_id: str | None
    finish_reason: str | None
    failure: str | None
    failure_detail: str
    reusable_share: float | None
    arrivals: list[tuple[float, int]]


def _row(record: RequestRecord) -> _Row:
    told: dict[str, object] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        told[field.name] = round(value, _DIGITS) if isinstance(value, float) else value
    told["arrivals"] = [(round(a.at_s, _DIGITS), a.tokens) for a in record.arrivals]
    return _Row(**told)  # type: ignore[arg-type]


def _record(row: _Row) -> RequestRecord:
    told = msgspec.structs.asdict(row)
    told["arrivals"] = tuple(Arrival(at_s, tokens) for at_s, tokens in row.arrivals)
    return RequestRecord(**told)


def _line(row: object) -> bytes:
    return msgspec.json.encode(row) + b"\n"


def _rows(path: Path, form: type[Form]) -> list[Form]:
    return [
        _decoded(line, form, f"{path}:{number}")
        for number, line in enumerate(_bytes_of(path).splitlines(), 1)
    ]


def _decoded(data: bytes, form: type[Form], where: str) -> Form:
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; a run's folder has it") from error
