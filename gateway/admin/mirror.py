"""What the gateway believes its workers have cached: in numbers, and block by block."""

from collections.abc import Callable

from aiohttp import web

from radixgate.errors import RequestError
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.identity import MirrorKey
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.workers.roster import Member
from radixgate.proto.kv_events import Tier
from radixgate.radix_mirror.mirror import RadixMirror

# A page of a dump: 19 characters a block.
_MOST_BLOCKS = 100_000


class MirrorRoutes:
    """Handlers of `/mirror`: nothing is asked of a worker for them."""

    def __init__(self, fleet: Fleet, find: Callable[[str], Member]) -> None:
        """`find`: a worker by id or URL; it raises UnknownWorker."""
        self._fleet = fleet
        self._find = find

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/mirror", self.in_numbers), web.get("/mirror/{name:.+}", self.dump)]

    async def in_numbers(self, request: web.Request) -> web.Response:
        """Every mirror with its size in bytes, and its workers. A mirror is one model's."""
        mirrors: dict[int, dict[str, object]] = {}
        workers: dict[int, dict[str, object]] = {}
        for view in self._fleet.workers():
            identity = view.identity
            mirror = self._fleet.mirror_of(identity.id)
            if id(mirror) not in mirrors:
                mirrors[id(mirror)] = _of_all(identity.mirror, mirror)
            workers.setdefault(id(mirror), {})[identity.id] = _numbers(mirror, identity.id)
        rows = [{**row, "workers": workers[key]} for key, row in mirrors.items()]
        return json_answer({"mirrors": rows})

    async def dump(self, request: web.Request) -> web.Response:
        """One worker's reported blocks by tier, ids in hexadecimal and in order.

        `?after=ID` goes on behind an id, `?limit=N` asks for fewer than a hundred thousand a tier.
        Raises UnknownWorker, RequestError, or WorkerFailed if it has not joined. O(all blocks).
        """
        worker_id = self._find(request.match_info["name"]).address.id
        mirror = self._fleet.mirror_of(worker_id)
        after = _number(request, "after", 16, default=-1)
        limit = min(_number(request, "limit", 10, default=_MOST_BLOCKS), _MOST_BLOCKS)
        stored = mirror.stored_by(worker_id)
        found = {
            tier: sorted(block for block in ids if block > after) for tier, ids in stored.items()
        }
        return json_answer(
            {
                "worker": worker_id,
                **_numbers(mirror, worker_id),
                "blocks": {
                    tier.name.lower(): [f"{block:016x}" for block in ids[:limit]]
                    for tier, ids in found.items()
                },
                "more": any(len(ids) > limit for ids in found.values()),
            }
        )


def _of_all(key: MirrorKey, mirror: RadixMirror) -> dict[str, object]:
    weight = mirror.weight()
    return {
        "model": key.model,
        "unit": key.unit,
        "block_size": key.block_size,
        "bytes": weight.bytes,
        "reported": weight.reported,
        "expected": mirror.expected(),
        "approximate": weight.approximate,
    }


def _numbers(mirror: RadixMirror, worker_id: str) -> dict[str, object]:
    blocks = mirror.blocks_of(worker_id)
    return {
        "stored": {tier.name.lower(): blocks.stored[tier] for tier in Tier},
        "expected": blocks.expected,
        "approximate": blocks.approximate,
        "pending_prompts": blocks.pending_prompts,
        "epoch": blocks.epoch,
        "complete": blocks.complete,
        "late_updates": blocks.late_updates,
    }


def _number(request: web.Request, name: str, base: int, *, default: int) -> int:
    given = request.query.get(name)
    if given is None:
        return default
    try:
        value = int(given, base)
    except ValueError:
        value = -1
    if value < 0:
        raise RequestError(
            f"{name} is {given!r:.40}, a number in base {base} is needed", param=name
        )
    return value
