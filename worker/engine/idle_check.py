"""While nobody runs or waits, every page must be free or cached; if not, that is repaired."""

import logging

from radixgate.log import fields
from radixgate.worker.engine.stats import EngineTally
from radixgate.worker.schedule.kv_changes import KvChanges
from radixgate.worker.schedule.kv_memory import KvMemory

_log = logging.getLogger(__name__)


class IdleCheck:
    """A leak is a bug of ours; a worker that loses pages for ever would be a second one."""

    def __init__(self, memory: KvMemory, changes: KvChanges, tally: EngineTally) -> None:
        self._memory = memory
        self._changes = changes
        self._tally = tally

    def run(self) -> None:
        """Only while no request is alive. O(1) if all is well, else O(pages)."""
        leak = self._memory.idle_leak()
        if leak is None:
            return
        self._tally.leaks += 1
        kept = self._memory.repair()
        if not kept:
            self._changes.cleared()
        _log.error("pages were missing", extra=fields(found=leak, cache_kept=kept))
