"""Finished steps are kept, and computed anew when anything that decides them has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simplexity.experiment import cache
from simplexity.experiment.cache import Cache, digest


def step() -> None:
    """What is cached here."""


class Counted:
    """An answer, and how often it was asked for."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.times = answer, 0

    def __call__(self) -> Any:
        self.times += 1
        return self.answer


def test_a_step_is_computed_once(tmp_path: Path) -> None:
    compute = Counted({"pairs": [(1, 2.5)]})
    kept = Cache(tmp_path / "steps", ("l2r 1234",))
    first, again = (kept.get(step, {"size": 1}, compute) for _ in range(2))
    assert compute.times == 1
    assert first == again == {"pairs": [[1, 2.5]]}  # both as JSON gives it back


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    kept = Cache(tmp_path / "steps", ())

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.get(step, 1, fail)
    with pytest.raises(TypeError):
        kept.get(step, 1, Counted({1j}))  # no JSON: nothing half-written either
    assert list((tmp_path / "steps").iterdir()) == []
    assert kept.get(step, 1, Counted("done")) == "done"


def test_settings_models_and_code_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Cache(tmp_path, ("l2r 1234",))
    names = {kept.name(step, {"size": 1}), kept.name(step, {"size": 2})}
    names.add(Cache(tmp_path, ("l2r 9999",)).name(step, {"size": 1}))
    monkeypatch.setattr(cache, "code", lambda: "other")
    names.add(kept.name(step, {"size": 1}))
    assert len(names) == 4


def test_the_order_of_settings_does_not_matter(tmp_path: Path) -> None:
    kept = Cache(tmp_path, ())
    assert kept.name(step, {"a": 1, "b": 2}) == kept.name(step, {"b": 2, "a": 1})


def test_a_digest_tells_where_texts_end() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_the_code_digest_covers_what_translates() -> None:
    """Every file of the rooms that decide a translation is there to be read."""
    package = Path(cache.__file__).parents[1]
    for place in cache.DECODING:
        assert (package / place).exists()
    assert cache.code.__wrapped__() == cache.code()  # type: ignore[attr-defined]
