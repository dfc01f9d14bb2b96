"""What a server lists in `/v1/models`: its model, further names of that, and adapters."""

from collections.abc import Mapping
from dataclasses import dataclass

# More than a server can have loaded; a list of a whole catalogue is not taken into the books.
MOST_NAMES = 1_024


@dataclass(frozen=True, slots=True)
class ListedModels:
    """The names in the server's order, each once."""

    model: str  # the first
    aliases: tuple[str, ...]
    adapters: tuple[str, ...]  # all that is not surely the model itself


def read_models(answer: object) -> ListedModels | None:
    """None: it lists none.

    vLLM gives every name of the base model the same `root` and no `parent`, and an adapter the base
    as its `parent`. What says neither is kept apart: two models that are taken for one would be
    believed to share their caches. O(names).
    """
    data = answer.get("data") if isinstance(answer, Mapping) else None
    listed = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    rows = {
        row["id"]: row
        for row in reversed(listed[:MOST_NAMES])
        if isinstance(row.get("id"), str) and row["id"]
    }
    names = list(reversed(rows))
    if not names:
        return None
    root = rows[names[0]].get("root")
    aliases: list[str] = []
    adapters: list[str] = []
    for name in names[1:]:
        row = rows[name]
        same = isinstance(root, str) and row.get("root") == root and not row.get("parent")
        (aliases if same else adapters).append(name)
    return ListedModels(names[0], tuple(aliases), tuple(adapters))
