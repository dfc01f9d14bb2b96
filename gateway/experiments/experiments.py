"""All experiments of one gateway: declared, started, stopped, shown.

At most one acts, and a few shadows decide beside it. Nothing of a run outlives the process: a
gateway that starts anew goes by its own policy, and takes no experiment up again.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from radixgate.analysis.experiments.records import ExperimentEnd
from radixgate.errors import ConfigError, RequestError
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.experiments.beginnings import Beginnings
from radixgate.gateway.experiments.known import Known, State
from radixgate.gateway.experiments.live_policy import LivePolicy
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.lookout import Lookout
from radixgate.gateway.experiments.record_file import InThread, unfinished
from radixgate.gateway.experiments.site import Site
from radixgate.gateway.loop.deadlines import NEVER
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig
from radixgate.log import fields

MOST_KNOWN = 64  # the oldest that is over is forgotten for a new one
MOST_SHADOWS = 4
TICK_S = 0.1
# Shadows look at who is in the fleet so often.
_FOLLOW_EVERY_S = 1.0
_TELL_EVERY_S = 60.0
# An experiment that begins with the gateway waits for its workers no longer.
_WORKERS_WITHIN_S = 60.0
_log = logging.getLogger(__name__)


class UnknownExperiment(RequestError):
    status = 404


class ExperimentConflict(RequestError):
    """It cannot be now; the message says what stands in its way."""

    status = 409


class Experiments:
    """Watched by the gateway's deadlines; costs nothing while nothing runs."""

    def __init__(
        self,
        site: Site,
        own_policy: RuledPolicy,
        declared: Mapping[str, LiveExperimentConfig],
        *,
        soon: Callable[[Callable[[], None]], object],
        in_thread: InThread,
    ) -> None:
        """Raises ConfigError for a declared experiment that cannot be."""
        self.deadline = NEVER
        self._site = site
        self._live = LivePolicy(site.fleet, own_policy)
        self._lookout = Lookout(site.clock, soon, self._step_acting)
        self._beginnings = Beginnings(site, self._live, self._lookout, in_thread)
        self._known: dict[str, Known] = {}
        for name, config in declared.items():
            self.declare(name, config)
        self._to_begin = [name for name, config in declared.items() if config.start]
        self._begin_by = site.clock.now() + _WORKERS_WITHIN_S
        self._next_follow = self._next_tell = 0.0
        if self._to_begin:
            self.deadline = site.clock.now()

    # ------------------------------------------------------------ what an admin can do

    def all(self) -> Iterator[Known]:
        return iter(self._known.values())

    def find(self, name: str) -> Known:
        """Raises UnknownExperiment."""
        known = self._known.get(name)
        if known is None:
            raise UnknownExperiment(f"there is no experiment {name!r:.100}", param="name")
        return known

    def declare(self, name: str, config: LiveExperimentConfig) -> Known:
        """Make it known, in the place of one that does not run. Raises ConfigError, or
        ExperimentConflict if one of this name runs or too many are known."""
        self._beginnings.check(name, config)
        before = self._known.get(name)
        if before is not None and before.runs:
            raise ExperimentConflict(f"experiment {name} is {before.state.value}: stop it first")
        if before is None and len(self._known) >= MOST_KNOWN:
            self._forget_one()
        known = self._known[name] = Known(name, config)
        return known

    def start(self, name: str) -> Known:
        """Begin, now. Raises UnknownExperiment, ExperimentConflict, or ConfigError."""
        known = self.find(name)
        if known.runs:
            raise ExperimentConflict(f"experiment {name} is {known.state.value} already")
        if known.config.kind == "shadow":
            self._start_shadow(known)
        else:
            self._start_acting(known)
        known.state, known.trouble = State.RUNNING, ""
        self._site.detour.by = self._lookout
        self.deadline = self._site.clock.now()
        return known

    def declare_and_start(self, name: str, config: LiveExperimentConfig) -> Known:
        """Both, or neither: what may not begin now is not known either. Raises as they do."""
        before = dict(self._known)
        self.declare(name, config)
        try:
            return self.start(name)
        except (ConfigError, RequestError):
            self._known = before
            raise

    def stop(self, name: str, detail: str = "by order") -> Known:
        """The gateway's own policy is back at once. Harmless for one that does not run."""
        known = self.find(name)
        if known.acting is not None and known.state is State.RUNNING:
            known.acting.stop("stopped", detail)
            known.state = State.CLOSING
        if known.shadow is not None and known.state is State.RUNNING:
            self._end_shadow(known, detail)
        self._tidy()
        return known

    # ------------------------------------------------------------ of the gateway's life

    def change_own_policy(self, policy: RuledPolicy) -> None:
        """The gateway's settings were changed; an experiment that acts keeps its turn."""
        self._live.change_own(policy)

    def stop_all(self, detail: str) -> None:
        """Nobody is held any more."""
        self._to_begin = []
        for name in self._known:
            self.stop(name, detail)

    def close(self) -> None:
        """The last lines are written now."""
        self.stop_all("the gateway stops")
        for known in self._known.values():
            if known.acting is not None and known.runs:
                known.acting.abandon()
        self._tidy()

    def on_deadline(self) -> None:
        now = self._site.clock.now()
        self.deadline = now + TICK_S
        self._begin_declared(now)
        self._step_acting()
        if now >= self._next_follow:
            self._next_follow = now + _FOLLOW_EVERY_S
            for shadow in self._lookout.shadows:
                shadow.follow(self._site.fleet)
        if now >= self._next_tell:
            self._next_tell = now + _TELL_EVERY_S
            self._tell()
        self._write()
        self._tidy()

    # ------------------------------------------------------------ inside

    def _start_acting(self, known: Known) -> None:
        before = self._lookout.acting
        if before is not None:
            raise ExperimentConflict(
                f"experiment {before.logbook.name} acts, and one at a time may; stop it, or wait"
                " until its last answers are in"
            )
        known.acting = acting = self._beginnings.acting(known.name, known.config)
        self._announce(acting.logbook)
        self._lookout.acting = acting
        acting.open()

    def _start_shadow(self, known: Known) -> None:
        if len(self._lookout.shadows) >= MOST_SHADOWS:
            raise ExperimentConflict(f"{MOST_SHADOWS} shadows run, which is as many as may")
        known.shadow = shadow = self._beginnings.shadow(known.name, known.config)
        self._announce(shadow.logbook)
        self._lookout.shadows += (shadow,)
        self._live.let_listen(self._lookout.shadows)

    def _end_shadow(self, known: Known, detail: str) -> None:
        shadow = known.shadow
        assert shadow is not None
        left = tuple(other for other in self._lookout.shadows if other is not shadow)
        self._lookout.shadows = left
        self._live.let_listen(left)
        logbook = shadow.logbook
        logbook.end(ExperimentEnd(logbook.name, logbook.now_s(), "stopped", detail))
        known.state = State.OVER
        _log.info("shadow stops", extra=fields(experiment=known.name, **shadow.state()))

    def _announce(self, logbook: Logbook) -> None:
        """Before the first request: the schedule cannot be chosen by what comes of it."""
        schedule = logbook.schedule
        _log.info(
            "experiment begins",
            extra=fields(
                experiment=logbook.name,
                kind=logbook.declaration.kind,
                seed=logbook.declaration.seed,
                schedule_sha256="-" if schedule is None else schedule.sha256,
                file=logbook.file.path,
            ),
        )

    def _begin_declared(self, now: float) -> None:
        if not self._to_begin or not (self._site.all_ready() or now >= self._begin_by):
            return
        names, self._to_begin = self._to_begin, []
        for name in names:
            try:
                cut_off = unfinished(self._site.folder, name)
                if cut_off is not None:
                    raise ConfigError(
                        f"{cut_off} has no end: the gateway was cut off while this experiment ran,"
                        " or another runs it. It is not begun by itself; start it by"
                        f" POST /experiments/{name}/start"
                    )
                self.start(name)
            except (ConfigError, RequestError) as error:
                self.find(name).trouble = error.message
                _log.warning(
                    "experiment not begun", extra=fields(experiment=name, why=error.message)
                )

    def _step_acting(self) -> None:
        """A fault of an experiment's ends it, and reaches no request."""
        acting = self._lookout.acting
        if acting is None:
            return
        try:
            acting.step()
        except Exception:
            _log.exception("an experiment failed", extra=fields(experiment=acting.logbook.name))
            acting.stop("failed", "a fault of ours; the log has the details")

    def _write(self) -> None:
        for known in self._known.values():
            run = known.acting or known.shadow
            if run is None or not known.runs:
                continue
            run.logbook.file.flush()
            failure = run.logbook.file.failure
            if failure and known.acting is not None:
                known.acting.stop("failed", failure)
            elif failure:
                self._end_shadow(known, failure)

    def _tell(self) -> None:
        for shadow in self._lookout.shadows:
            told = fields(experiment=shadow.logbook.name, **shadow.state())
            _log.info("shadow decides", extra=told)

    def _tidy(self) -> None:
        """Note what is over; with nothing left the way round is closed."""
        for known in self._known.values():
            if known.acting is None or not known.runs:
                continue
            if known.acting.over:
                known.state = State.OVER
                self._lookout.acting = None
            elif known.acting.closing:
                known.state = State.CLOSING
        if self._lookout.acting is None and not self._lookout.shadows:
            self._site.detour.by = None
            if not self._to_begin:
                self.deadline = NEVER

    def _forget_one(self) -> None:
        over = next((known for known in self._known.values() if known.state is State.OVER), None)
        if over is None:
            raise ExperimentConflict(f"{MOST_KNOWN} experiments are known, and none is over")
        del self._known[over.name]
