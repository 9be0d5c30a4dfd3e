"""How the time of a decoder divides: seen from its models, so that no decoder has to help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from simplexity.models.family import Family
from simplexity.models.seq2seq import Seq2Seq
from simplexity.relax.tokens import Soft

Phase = Literal["search", "encode", "lift", "forward", "backward", "rounding", "update"]
"""search: steps of a discrete search, with what lies between them. encode: sources read. lift:
predictions along hard strings, which descents and proposals begin from. forward, backward: passes
over soft strings. rounding: scores of hard strings. update: everything else, such as updates,
stopping, the choice between strings, cutting and joining text."""

PHASES: tuple[Phase, ...] = get_args(Phase)
CALLS: dict[str, Phase] = {
    "start": "search",
    "step": "search",
    "encode": "encode",
    "log_probs": "lift",
    "score": "rounding",
}
"""What a model's methods are for, when their arguments are hard strings."""


def now_on(device: torch.device | str) -> Callable[[], float]:
    """The clock of a device: processor time, or on a GPU the time when it has done all work."""
    if torch.device(device).type == "cpu":
        return time.process_time

    def after_all_work() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return after_all_work


@dataclass
class Clock:
    """Adds up the seconds of every phase. Calls within a call belong to the outer one."""

    now: Callable[[], float] = time.process_time
    seconds: dict[Phase, float] = field(init=False)
    _last: tuple[Phase, float] | None = field(default=None, init=False)
    _within: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was added up so far."""
        self.seconds = dict.fromkeys(PHASES, 0.0)

    def begin(self) -> None:
        """From here on time counts."""
        self._last = ("update", self.now())

    def end(self) -> None:
        """What has passed since the last call is an update's."""
        self._gap("update", self.now())
        self._last = None

    def timed(self, call: Callable[[], Any], phase: Callable[[Any], Phase]) -> Any:
        """The answer of a call, whose time is added to the phase that the answer tells."""
        if self._within or self._last is None:
            return call()
        begun, self._within = self.now(), True
        try:
            answer = call()
        finally:
            self._within = False
        ended, found = self.now(), phase(answer)
        self._gap(found, begun)
        self.seconds[found] += ended - begun
        self._last = (found, ended)
        return answer

    def _gap(self, following: Phase, until: float) -> None:
        """Between two steps of a search is the search; all other gaps are updates."""
        assert self._last is not None
        before, since = self._last
        between: Phase = "search" if before == following == "search" else "update"
        self.seconds[between] += until - since

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of this block, passes back through `torch.autograd.grad` included."""
        gradient = torch.autograd.grad

        def timed_gradient(*given: Any, **named: Any) -> Any:
            return self.timed(lambda: gradient(*given, **named), lambda _: "backward")

        torch.autograd.grad = timed_gradient
        self.begin()
        try:
            yield
        finally:
            self.end()
            torch.autograd.grad = gradient


class ClockedModel:
    """A model all of whose calls are timed; whatever else is asked of it, it hands on."""

    def __init__(self, model: Seq2Seq, clock: Clock) -> None:
        self._model, self._clock = model, clock
        self._soft: Any = None  # the memory of the last soft string that was read

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in CALLS:
            return found

        def call(*given: Any, **named: Any) -> Any:
            soft = any(isinstance(x, Soft) or (x is self._soft is not None) for x in given)

            def phase(answer: Any) -> Phase:
                if soft and name == "encode":
                    self._soft = answer
                return "forward" if soft or wants_gradient(answer) else CALLS[name]

            return self._clock.timed(lambda: found(*given, **named), phase)

        return call


def wants_gradient(answer: Any) -> bool:
    """Whether some tensor of an answer, or of a record in it, is to be differentiated."""
    if isinstance(answer, Tensor):
        return answer.requires_grad
    if isinstance(answer, tuple):
        return any(map(wants_gradient, answer))
    return any(map(wants_gradient, getattr(answer, "__dict__", {}).values()))


def clocked(family: Family, clock: Clock) -> Family:
    """The same family with every call of its models timed."""
    members = {
        name: replace(member, model=cast(Seq2Seq, ClockedModel(member.model, clock)))
        for name, member in family.members.items()
    }
    return replace(family, members=members)
