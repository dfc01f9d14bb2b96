"""Text to token ids and back: for our own models here, for others by a worker of theirs."""

from collections.abc import Mapping

from aiohttp import web

from radixgate.errors import NoWorkerAvailable, RequestError
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.admin.access import CALLER
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.asking.asked_model import AskedModel, asked_model
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer, ServedModel
from radixgate.gateway.workers.workers import Workers
from radixgate.proto.fields import Fields, as_token_ids, decode_object
from radixgate.proto.openai import parse_chat, parse_completion

_CHAT_FIELDS = ("messages", "tools", "chat_template_kwargs")


class TokenRoutes:
    """Handlers of `/tokenize` and `/detokenize`, as vLLM and SGLang have them."""

    def __init__(self, workers: Workers, fleet: Fleet, prompts: PromptTokenizer) -> None:
        self._workers = workers
        self._fleet = fleet
        self._prompts = prompts

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/tokenize", self.tokenize),
            web.post("/v1/tokenize", self.tokenize),
            web.post("/detokenize", self.detokenize),
            web.post("/v1/detokenize", self.detokenize),
        ]

    async def tokenize(self, request: web.Request) -> web.Response:
        """`prompt` (a text, or several) or `messages`; `add_special_tokens` is true unless given.

        Raises RequestError naming the field; also for a prompt that is over the model's context.
        """
        data = await request.read()
        body = decode_object(data)
        served = self._served(request, body)
        if served is None:
            return await self._pass_on(request, body, data)
        if "messages" in body:
            parsed = parse_chat({name: body[name] for name in _CHAT_FIELDS if name in body})
        else:
            parsed = parse_completion({"prompt": body.get("prompt")})
        tokens, _ = await self._prompts.read(served.name, parsed, ())
        start: list[int] = list(served.encoder.tokenizer.start_ids)
        bare = Fields(body).flag("add_special_tokens") is False and "messages" not in body
        found = []
        for ids in map(list, tokens.prompts):
            found.append(ids[len(start) :] if bare and ids[: len(start)] == start else ids)
        counts: list[int] = list(map(len, found))
        several = isinstance(body.get("prompt"), list)
        return json_answer(
            {
                "tokens": found if several else found[0],
                "count": counts if several else counts[0],
                "max_model_len": served.context_length,
            }
        )

    async def detokenize(self, request: web.Request) -> web.Response:
        """`tokens`, an array of ids; `skip_special_tokens` is true unless given."""
        data = await request.read()
        body = decode_object(data)
        served = self._served(request, body)
        if served is None:
            return await self._pass_on(request, body, data)
        fields = Fields(body)
        ids = as_token_ids(fields.items("tokens") or [], "tokens")
        unknown = next((one for one in ids if one >= served.vocab_size), None)
        if unknown is not None:
            raise RequestError(
                f"tokens holds {unknown}, the vocabulary has {served.vocab_size}", param="tokens"
            )
        if len(ids) > served.context_length:
            raise RequestError(
                f"tokens holds {len(ids)} ids, the context is {served.context_length}",
                param="tokens",
            )
        skip = fields.flag("skip_special_tokens") is not False
        text = served.encoder.tokenizer.decode(ids, skip_special_tokens=skip)
        # vLLM's clients read `prompt`, SGLang's `text`.
        return json_answer({"text": text, "prompt": text})

    def _served(self, request: web.Request, body: Mapping[str, object]) -> ServedModel | None:
        model, adapter = self._model(request, body)
        return self._prompts.served(model) if adapter is None else None

    def _model(self, request: web.Request, body: Mapping[str, object]) -> AskedModel:
        """Raises as `asked_model`."""
        unheard_of = self._workers.roster.unheard_of
        served = self._fleet.served
        return asked_model(body.get("model"), request[CALLER], served, unheard_of)

    async def _pass_on(
        self, request: web.Request, body: Mapping[str, object], data: bytes
    ) -> web.Response:
        model, adapter = self._model(request, body)
        for member in self._workers.ready():
            identity = member.identity
            if identity is None or not identity.serves(model):
                continue
            if adapter is None or adapter in identity.adapters:
                answer = await member.handle.ask("POST", request.path, data)
                return web.Response(
                    body=answer.body, status=answer.status, content_type="application/json"
                )
        raise NoWorkerAvailable(f"no worker of {model!r:.200} is ready")
