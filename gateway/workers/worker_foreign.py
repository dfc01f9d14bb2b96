"""A foreign worker as the gateway knows it: any server with OpenAI's or SGLang's HTTP interface."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.fleet.fleet import MirrorKey, WorkerIdentity
from radixgate.gateway.asking.prompt_place import BYTES
from radixgate.gateway.attempt.abort_order import AbortOrder, in_turns
from radixgate.gateway.upstream.fetch import Fetched, fetch
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.leads_back import leads_back
from radixgate.gateway.workers.listed_models import read_models
from radixgate.gateway.workers.reached import aborted_of
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.gateway.workers.worker_handle import OrderResult
from radixgate.gateway.workers.worker_http import HttpWorkerClient

# Where a server tells its model's name, the one that clients use first.
_MODEL_KEYS = ("served_model_name", "model_id", "model_path")
_MODELS = "/v1/models"
_NOT_THERE = (404, 405, 501)


class ForeignWorker:
    """A `WorkerHandle` over HTTP. It is known by what it says of itself, asked once a life: a new
    connection may lead to another process, which nobody need have missed in between. Only its names
    are asked for each time, as adapters are loaded and unloaded while it runs."""

    def __init__(
        self,
        address: WorkerAddress,
        client: HttpWorkerClient,
        pool: UpstreamPool,
        check_timeout: Callable[[], float],
        gateway_id: str = "",
    ) -> None:
        """`pool`: for questions and orders, apart from the connections that generations use.
        `check_timeout`: seconds for each, as it is by then. `gateway_id`: this gateway's."""
        self._gateway_id = gateway_id
        self._address = address
        self._client = client
        self._pool = pool
        self._check_timeout = check_timeout
        self._identity: WorkerIdentity | None = None  # None: it has not told, or was away since
        self._untold = False  # asked over a new connection, it has not said who it is
        self._told_at = 0  # connections that there had been when it was asked
        self._given_up = 0  # of those that we closed since for want of patience, and dial anew

    @property
    def client(self) -> HttpWorkerClient:
        return self._client

    async def probe(self) -> WorkerIdentity:
        """Asks /health, and over a new connection who it is. Raises WorkerFailed until all is
        known; from then on /health alone tells whether it is well, and the other questions have to
        do with the time that it leaves."""
        until = _now() + self._check_timeout()
        try:
            health = await self._get("/health")
            if not health.ok and health.status not in _NOT_THERE:
                raise self._failure(f"/health answers {health.status}")
            if self._identity is None:
                self._identity = await self._discover()
                self._untold, self._told_at, self._given_up = False, self._pool.dialed, 0
            else:
                self._identity = await self._told_again(self._identity, until)
        except RadixgateError:
            self._identity = None
            raise
        return self._identity

    async def run(self) -> None:
        """Nothing goes on beside the probes: it reports neither KV nor load."""
        try:
            await asyncio.Event().wait()
        finally:
            self._pool.close()

    def close(self) -> None:
        self._client.close()

    def heard(self) -> bool:
        pool = self._client.pool
        heard, pool.heard = pool.heard, False
        return heard

    async def flush_cache(self) -> OrderResult:
        return await self._order("/flush_cache", b"")

    async def abort_request(self, order: AbortOrder) -> OrderResult:
        unsent = self._client.abort_unsent(order)
        if unsent and order.rid is not None and not self.runs(order):
            return OrderResult(True, "it had not been sent", {"aborted": unsent})
        told: dict[str, object] = {"rid": order.rid or ""}
        if order.everything:
            told["abort_all"] = True
        elif order.prefix:
            told["prefix"] = True
        over = self.expect_abort(order)  # they may end before it has answered
        result = OrderResult(False, "")
        try:
            result = await self._order("/abort_request", msgspec.json.encode(told))
        finally:
            over(result.ok)
        if not unsent:
            return result
        # A worker that nobody can connect to cannot be told either, and has nothing of ours to end.
        ended = unsent + (aborted_of(result) or 0)
        return OrderResult(
            result.ok or not self.runs(order), f"{ended} aborted", {"aborted": ended}
        )

    async def read_rids(self) -> None:
        await in_turns([one.read_rid for one in self._client.running])

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        return self._client.expected.expect(order)

    async def info(self, path: str) -> OrderResult:
        try:
            answer = await self._get(path)
        except RadixgateError as error:
            return OrderResult(False, error.message)
        return _result(answer)

    def runs(self, order: AbortOrder) -> bool:
        return self._client.runs(order)

    async def ask(self, method: str, path: str, body: bytes) -> Fetched:
        return await fetch(self._pool, method, path, body, timeout_s=self._check_timeout())

    async def _order(self, path: str, body: bytes) -> OrderResult:
        try:
            answer = await fetch(self._pool, "POST", path, body, timeout_s=self._check_timeout())
        except RadixgateError as error:
            return OrderResult(False, error.message)
        return _result(answer)

    async def _told_again(self, known: WorkerIdentity, until: float) -> WorkerIdentity:
        """What is not told in time stays as it was; who it is, is then asked again."""
        dialed = self._pool.dialed
        another = self._untold or dialed - self._told_at > self._given_up
        if another:
            try:
                async with asyncio.timeout((until - _now()) / 2):
                    known = self._told(known, await self._server_info())
                self._untold = False
            except (TimeoutError, RadixgateError):
                self._untold = True
        self._told_at, self._given_up = dialed, 0
        told_anew = another and not self._untold
        return await self._renamed(known, (until - _now()) / 2, another=told_anew)

    async def _discover(self) -> WorkerIdentity:
        info = await self._server_info()
        if leads_back(info, self._gateway_id):
            raise self._failure("it is this gateway, or asks it")
        listed = read_models(await self._json(_MODELS))
        model = await self._model_name(info) if listed is None else listed.model
        told = WorkerIdentity(
            id=self._address.id,
            url=self._address.url,
            kind="http",
            model=model,
            mirror=MirrorKey(model, BYTES, 0),
            capacity_tokens=None,
            weights_id=model,
            instance_id="",
            reports_kv=False,
            aliases=() if listed is None else listed.aliases,
            adapters=() if listed is None else listed.adapters,
        )
        return self._told(told, info)

    async def _renamed(
        self, known: WorkerIdentity, patience_s: float, *, another: bool
    ) -> WorkerIdentity:
        """With the names that it has now; a list that cannot be had changes nothing. Another model
        is another worker, and so may be `another` process that has no list."""
        try:
            async with asyncio.timeout(patience_s):
                answer = await self._get(_MODELS)
        except TimeoutError:
            self._given_up = 1
            return known
        except RadixgateError:
            return known
        listed = read_models(answer.json()) if answer.ok else None
        if listed is None:
            refused = not answer.ok and answer.status not in _NOT_THERE
            return await self._discover() if another and not refused else known
        if listed.model != known.model:
            return await self._discover()
        if (listed.aliases, listed.adapters) == (known.aliases, known.adapters):
            return known
        return replace(known, aliases=listed.aliases, adapters=listed.adapters)

    async def _server_info(self) -> Mapping[str, object]:
        # SGLang's newer servers have it without the verb.
        return await self._json("/get_server_info") or await self._json("/server_info")

    async def _model_name(self, server_info: Mapping[str, object]) -> str:
        for info in (server_info, await self._json("/get_model_info")):
            for key in _MODEL_KEYS:
                name = info.get(key)
                if isinstance(name, str) and name:
                    return name
        raise self._failure("it does not say which model it serves")

    async def _json(self, path: str) -> Mapping[str, object]:
        """The object that `path` answers with; empty where there is no such path."""
        answer = await self._get(path)
        if answer.status in _NOT_THERE:
            return {}
        if not answer.ok:
            raise self._failure(f"{path} answers {answer.status}")
        value = answer.json()
        return value if isinstance(value, dict) else {}

    async def _get(self, path: str) -> Fetched:
        return await fetch(self._pool, "GET", path, timeout_s=self._check_timeout())

    def _told(self, known: WorkerIdentity, info: Mapping[str, object]) -> WorkerIdentity:
        # SGLang's older `stream_output` has news in the ids alone: their number tells it.
        news = info.get("incremental_streaming_output")
        self._client.texts_are_news = news if isinstance(news, bool) else None
        capacity, instance = info.get("max_total_num_tokens"), info.get("instance_id")
        return replace(
            known,
            capacity_tokens=capacity if type(capacity) is int and capacity > 0 else None,
            instance_id=instance if isinstance(instance, str) else "",
        )

    def _failure(self, why: str) -> WorkerFailed:
        return self._pool.failure(why)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _result(answer: Fetched) -> OrderResult:
    text = answer.body[:200].decode("utf-8", "replace").strip()
    return OrderResult(answer.ok, text or f"status {answer.status}", answer.json())
