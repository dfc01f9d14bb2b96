"""The models that a fleet serves, under all their names, and which of them a request means."""

from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.fleet.identity import WorkerIdentity

# Pairs of a model and an adapter, of those that are served.
_MOST_PAIRS = 4_096


class ServedModels:
    """Counts workers by name; a name without any is not served."""

    def __init__(self) -> None:
        # By name, how many workers have its cache under which name; none of zero.
        self._spaces: dict[str, Counter[str]] = {}
        self._workers: Counter[str] = Counter()  # by the model's own name, none of zero
        self.names: frozenset[str] = frozenset()  # asked for with each request
        self.models: frozenset[str] = frozenset()  # without aliases and adapters
        self.own: frozenset[str] = frozenset()  # those that workers of ours serve
        self.all_ours = False  # there are workers, and none is foreign
        self._own: Counter[str] = Counter()
        self._identities: dict[str, WorkerIdentity] = {}
        self._listing = lru_cache(maxsize=_MOST_PAIRS)(self._find_listing)

    def join(self, identity: WorkerIdentity) -> None:
        self._workers[identity.model] += 1
        for name, space in identity.spaces():
            self._spaces.setdefault(name, Counter())[space] += 1
        self._identities[identity.id] = identity
        if identity.kind == "grpc":
            self._own.update(identity.names)
        self._note()

    def leave(self, identity: WorkerIdentity) -> None:
        self._workers -= Counter((identity.model,))
        for name, space in identity.spaces():
            self._spaces[name] -= Counter((space,))
            if not self._spaces[name]:
                del self._spaces[name]
        del self._identities[identity.id]
        if identity.kind == "grpc":
            self._own -= Counter(identity.names)
        self._note()

    def having(self, model: str, adapters: Collection[str]) -> frozenset[str]:
        """The ids of workers that list all these adapters, of which there is one at least, and
        `model` as their model or an alias of it. O(adapters), and once a change O(workers)."""
        names = self.names
        if model not in names or not names.issuperset(adapters):
            return frozenset()
        return frozenset.intersection(*[self._listing(model, adapter) for adapter in adapters])

    def space_of(self, name: str) -> str:
        """Under which name prompts for this one are cached. What workers do not agree on is cached
        by itself: less is believed than is true, and never another adapter's."""
        spaces = self._spaces.get(name)
        return next(iter(spaces)) if spaces is not None and len(spaces) == 1 else name

    def named(self, name: str | None) -> str:
        """The name to route by; None or "": the only model there is.

        Raises RequestError if there are several, UnknownModel with the list, NoWorkerAvailable.
        """
        if name and name in self.names:
            return name
        if not self.names:
            raise NoWorkerAvailable("no worker has joined yet")
        if name:
            raise UnknownModel(name, self.names)
        if len(self.models) > 1:
            raise RequestError(f"name a model: {', '.join(sorted(self.names))}", param="model")
        return next(iter(self.models))

    def _note(self) -> None:
        self.names, self.models = frozenset(self._spaces), frozenset(self._workers)
        self.own = frozenset(self._own)
        self.all_ours = {identity.kind for identity in self._identities.values()} == {"grpc"}
        self._listing.cache_clear()

    def _find_listing(self, model: str, adapter: str) -> frozenset[str]:
        return frozenset(
            one.id
            for one in self._identities.values()
            if (model == one.model or model in one.aliases) and adapter in one.adapters
        )
