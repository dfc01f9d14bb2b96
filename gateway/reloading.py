"""Settings read again while requests run: all of them hold, or none, and the answer says which."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from radixgate.errors import ConfigError, RequestError
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.entry.key_ring import KeyRing, keys_of
from radixgate.gateway.settings.change import Change, change_of
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.keys_file import KeyEntry
from radixgate.gateway.settings.share_of_limits import check_shares
from radixgate.gateway.workers.workers import Workers
from radixgate.gateway.workers.workers_file import WorkerEntry, configured_workers
from radixgate.log import fields

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Adoption:
    """Settings that have been found good, with the keys they name."""

    change: Change
    keys: Sequence[KeyEntry]

    @property
    def settings(self) -> GatewaySettings:
        return self.change.settings


class Reloading:
    """Knows the settings that hold, and the workers that they name."""

    def __init__(
        self,
        current: GatewaySettings,
        adopt: Callable[[Adoption], Awaitable[None]],
        workers: Workers,
    ) -> None:
        """`adopt` makes settings hold; a policy that cannot be made is a ConfigError, raised before
        anything has changed."""
        self._current = current
        self._reread: Callable[[], GatewaySettings] = lambda: current
        self._adopt = adopt
        self._workers = workers
        self._named: Mapping[str, WorkerEntry] = {}
        self._keys: Sequence[KeyEntry] = ()
        self._one_at_a_time = asyncio.Lock()

    def read_by(self, current: GatewaySettings, reread: Callable[[], GatewaySettings]) -> None:
        """These hold now, and `reread` says what shall hold on a reload."""
        self._current = current
        self._reread = reread

    def begin(self) -> None:
        """Add the workers that the settings name. Raises ConfigError."""
        config = self._current.config
        self._keys = keys_of(self._current.rules.access)
        self._named = configured_workers(
            config.worker_urls, config.workers_file, self._workers.roster
        )
        self._add(self._named)

    async def by_request(self, request: web.Request) -> web.Response:
        """Raises RequestError with what is wrong; nothing has changed then."""
        try:
            change = await self.reload()
        except ConfigError as error:
            raise RequestError(
                f"nothing was changed: {error.message}", code="invalid_settings"
            ) from error
        return json_answer(
            {"changed": list(change.changed), "needs_restart": list(change.needs_restart)}
        )

    async def by_signal(self) -> None:
        """What is wrong goes to the log; nothing has changed then."""
        try:
            await self.reload()
        except ConfigError as error:
            _log.error("settings not reloaded", extra=fields(why=error.message))

    async def reload(self) -> Change:
        """Raises ConfigError; nothing has changed then."""
        async with self._one_at_a_time:
            change = change_of(self._current, self._reread())
            config, rules = change.settings.config, change.settings.rules
            check_shares(config.processes, rules.limits)
            keys = keys_of(rules.access)
            before = KeyRing.made(self._current.rules.access, self._keys)
            KeyRing.made(rules.access, keys).check_as_shut_as(before)
            named = configured_workers(
                config.worker_urls, config.workers_file, self._workers.roster
            )
            self._check_known(named)
            await self._adopt(Adoption(change, keys))
            change = self._with_files(change, keys, named)
            self._current, self._keys = change.settings, keys
            await self._follow(named)
        _log.info(
            "settings reloaded",
            extra=fields(
                changed=",".join(change.changed) or "nothing",
                needs_restart=",".join(change.needs_restart) or "nothing",
            ),
        )
        return change

    def _with_files(
        self, change: Change, keys: Sequence[KeyEntry], named: Mapping[str, WorkerEntry]
    ) -> Change:
        """A file whose name stays counts as changed where what it says has, and `workers` where
        one that was named before was removed by request: it is taken up again."""
        changed = {*change.changed}
        if keys != self._keys:
            changed.add("access.api_keys_file")
        if named != self._named and "gateway.worker_urls" not in changed:
            changed.add("gateway.workers_file")
        if any(self._was_removed(worker_id) for worker_id in self._named.keys() & named.keys()):
            changed.add("workers")
        return replace(change, changed=tuple(sorted(changed)))

    # ------------------------------------------------------------ the workers

    def _was_removed(self, worker_id: str) -> bool:
        member = self._workers.roster.get(worker_id)
        return member is None or member.leaving is not None

    def _check_known(self, named: Mapping[str, WorkerEntry]) -> None:
        for worker_id, entry in named.items():
            member = self._workers.roster.get(worker_id)
            if member is None or member.leaving is not None:
                continue
            if member.address != self._workers.roster.address(entry.url):
                raise ConfigError(
                    f"worker {worker_id} is {member.address.url} now: remove it first"
                )
            before = self._named.get(worker_id)
            # One that was named without a key may have got it by a request.
            named_key = before is not None and before.api_key is not None
            if entry.api_key != member.api_key and (named_key or entry.api_key is not None):
                raise ConfigError(f"worker {worker_id} has another key now: remove it first")

    async def _follow(self, named: Mapping[str, WorkerEntry]) -> None:
        """What the settings name no more leaves; what was added by request stays."""
        for worker_id in self._named.keys() - named.keys():
            member = self._workers.roster.get(worker_id)
            if member is not None:
                await self._workers.before_leaving(member)
                self._workers.remove(worker_id)
        before, self._named = self._named, named
        self._add(named)
        for worker_id, entry in named.items():
            had = before.get(worker_id)
            if entry.labels is None and had is not None and had.labels is not None:
                self._workers.find(worker_id).labels = {}

    def _add(self, named: Mapping[str, WorkerEntry]) -> None:
        for entry in named.values():
            member = self._workers.add(entry.url, entry.api_key)
            if entry.labels is not None:
                member.labels = entry.labels
