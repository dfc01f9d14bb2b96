"""The models that a fleet serves, and which of them a request means."""

from collections import Counter

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel


class ServedModels:
    """Counts workers by model; a model without any is not served."""

    def __init__(self) -> None:
        self._workers: Counter[str] = Counter()  # none of zero
        self.names: frozenset[str] = frozenset()  # asked for with each request

    def join(self, model: str) -> None:
        self._workers[model] += 1
        self.names = frozenset(self._workers)

    def leave(self, model: str) -> None:
        self._workers -= Counter((model,))
        self.names = frozenset(self._workers)

    def named(self, name: str | None) -> str:
        """The model to route by; None or "": the only one there is.

        Raises RequestError if there are several, UnknownModel with the list, NoWorkerAvailable.
        """
        models = self._workers
        if name and name in models:
            return name
        if not models:
            raise NoWorkerAvailable("no worker has joined yet")
        if name:
            raise UnknownModel(name, models)
        if len(models) > 1:
            raise RequestError(f"name a model: {', '.join(sorted(models))}", param="model")
        return next(iter(models))
