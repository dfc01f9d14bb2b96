"""One worker as the admin API and the metrics show it."""

from radixgate.fleet.fleet import Fleet, LoadReport
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.observe.metrics import WorkerRow
from radixgate.gateway.workers.roster import Member, Roster


def worker_row(member: Member, fleet: Fleet, choice: WorkerChoice) -> dict[str, object]:
    """The JSON of one worker. What is not known is null: never zero, never a made-up name."""
    view = fleet.worker(member.address.id)
    row: dict[str, object] = {
        "id": member.address.id,
        "url": member.address.url,
        "state": member.state.value,
        "breaker": choice.breaker_of(member.address.id),
        "labels": dict(member.labels),
        "model": None if view is None else view.identity.model,
        "kind": None if view is None else view.identity.kind,
        "in_flight": 0 if view is None else view.in_flight,
        "tokens_in_flight": 0 if view is None else view.tokens_in_flight,
        "capacity_tokens": None if view is None else view.identity.capacity_tokens,
        "load": None if view is None else _load(view.report),
        "blocks_mirrored": 0 if view is None else _mirrored(fleet, view.identity.id),
        "reports_kv": None if view is None else view.identity.reports_kv,
    }
    if member.trouble:
        row["trouble"] = member.trouble
    return row


def worker_gauges(roster: Roster, fleet: Fleet) -> list[WorkerRow]:
    """What the metrics show of each worker."""
    rows = []
    for member in roster.members():
        worker_id = member.address.id
        record = fleet.record(worker_id)
        in_flight = 0 if record is None else record.in_flight
        blocks = 0 if record is None else _mirrored(fleet, worker_id)
        breaker = roster.choice.breaker_of(worker_id)
        rows.append(WorkerRow(worker_id, member.state.value, in_flight, blocks, breaker))
    return rows


def _mirrored(fleet: Fleet, worker_id: str) -> int:
    """Blocks believed to be there: as reported, or as expected of what was sent. One of a prompt
    that is stored in part may count as both. O(1)."""
    blocks = fleet.mirror_of(worker_id).blocks_of(worker_id)
    return sum(blocks.stored.values()) + blocks.expected + blocks.approximate


def _load(report: LoadReport | None) -> dict[str, object] | None:
    """The last report; None if there is none, or it is too old to be worth anything."""
    if report is None:
        return None
    return {
        "running": report.running,
        "waiting": report.waiting,
        "queued_uncached_tokens": report.queued_uncached_tokens,
        "kv_tokens_used": report.kv_tokens_used,
        "kv_tokens_evictable": report.kv_tokens_evictable,
        "kv_tokens_total": report.kv_tokens_total,
        "phase": report.phase,
        "weight_version": report.weight_version,
    }
