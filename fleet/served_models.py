"""The models that a fleet serves, under all their names, and which of them a request means."""

from collections import Counter

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.fleet.identity import WorkerIdentity


class ServedModels:
    """Counts workers by name; a name without any is not served."""

    def __init__(self) -> None:
        # By name, how many workers have its cache under which name; none of zero.
        self._spaces: dict[str, Counter[str]] = {}
        self._workers: Counter[str] = Counter()  # by the model's own name, none of zero
        self.names: frozenset[str] = frozenset()  # asked for with each request
        self.models: frozenset[str] = frozenset()  # without aliases and adapters

    def join(self, identity: WorkerIdentity) -> None:
        self._workers[identity.model] += 1
        for name, space in identity.spaces():
            self._spaces.setdefault(name, Counter())[space] += 1
        self._note()

    def leave(self, identity: WorkerIdentity) -> None:
        self._workers -= Counter((identity.model,))
        for name, space in identity.spaces():
            self._spaces[name] -= Counter((space,))
            if not self._spaces[name]:
                del self._spaces[name]
        self._note()

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
