"""The parts of `simplexity bench`: clocks, counts, systems, peers, memory, tables."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from simplexity.bench.clock import PHASES, Clock, clocked
from simplexity.bench.curves import Point, growth, measure_point
from simplexity.bench.flops import FlopCount, products, roofline
from simplexity.bench.memory import in_young_process
from simplexity.bench.peers import PEERS, Task, ours, peers
from simplexity.bench.random_family import Sizes, random_family, random_lines
from simplexity.bench.run import compared
from simplexity.bench.systems import best, mean_iterations, system, translator
from simplexity.bench.table import aligned, render
from simplexity.bench.turns import Timing, by_turns
from simplexity.errors import SimplexityError, UsageError
from simplexity.models.adapters import AttentionalSeq2Seq
from simplexity.models.attention import Attentional, AttentionalConfig
from simplexity.models.family import Family
from simplexity.relax.tokens import Hard
from simplexity.search.beam import BeamSettings

SMALL = Sizes("transformer", vocabulary=60, hidden=64, layers=1, seed=3)
LINES = ["der hund", "ein rot tag", "tag"]


class Ticking:
    """A clock that goes on by one with every look."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> float:
        self.now += 1
        return float(self.now)


def test_a_clock_gives_every_second_to_one_phase() -> None:
    clock = Clock(Ticking())
    with clock.running():  # begins at 1
        for phase in ("search", "search", "forward"):  # 2-3, 4-5, 6-7
            clock.timed(lambda: None, lambda _, phase=phase: phase)
        clock.timed(lambda: clock.timed(lambda: None, lambda _: "lift"), lambda _: "rounding")
    # What lies between the searches is theirs; 1-2, 5-6, 7-8, 9-10 are updates.
    expected = {"search": 3.0, "forward": 1.0, "rounding": 1.0, "update": 4.0}
    assert clock.seconds == dict.fromkeys(PHASES, 0.0) | expected
    clock.reset()
    assert sum(clock.seconds.values()) == 0


def test_a_clock_mends_what_it_patched() -> None:
    before, clock = torch.autograd.grad, Clock()
    with pytest.raises(ValueError, match="broken"), clock.running():
        raise ValueError("broken")
    assert torch.autograd.grad is before


SPENT = {
    "beam": {"search", "encode", "update"},
    "rerank:joint:beam_size=3": {"search", "encode", "rounding", "update"},
    "eg:forward": set(PHASES),
    "eg:joint:iterations=3": set(PHASES),
}


@pytest.mark.parametrize("name", SPENT)
def test_phases_are_those_of_the_decoder(name: str, tiny_family: Callable[..., Family]) -> None:
    family, chosen = tiny_family(), system(name)
    clock = Clock(Ticking())
    watched = translator(chosen, clocked(family, clock), as_long=False)
    with clock.running():
        found = best(watched, LINES)
    assert {phase for phase, seconds in clock.seconds.items() if seconds} == SPENT[name]
    assert found == best(translator(chosen, family, as_long=False), LINES)


def test_backward_passes_are_counted_one_an_iteration(tiny_family: Callable[..., Family]) -> None:
    clock = Clock(Ticking())
    family = clocked(tiny_family(), clock)
    with clock.running():
        best(translator(system("eg:bidirectional:iterations=3"), family, as_long=False), LINES)
    assert clock.seconds["backward"] == 4  # the start's and three more
    assert clock.seconds["forward"] == 8  # two models each


def lstm(batch: int, length: int, size: int, hidden: int) -> int:
    """Four gates see the word and the state: two operations a multiplication."""
    return 2 * batch * length * 4 * hidden * (size + hidden)


def test_operations_of_a_recurrence_are_those_counted_by_hand() -> None:
    layer, words = nn.LSTM(5, 7, batch_first=True), torch.randn(2, 3, 5)
    with FlopCount() as count, torch.no_grad():
        layer(words)
    assert count.by_type == {"fp32": lstm(2, 3, 5, 7)}
    with FlopCount() as count:
        layer(words.requires_grad_())[0].sum().backward()
    assert count.by_type == {"fp32": 3 * lstm(2, 3, 5, 7)}  # back: to the words, to the weights


def test_operations_of_attention_are_those_counted_by_hand() -> None:
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 6, 8)
    with FlopCount() as count, torch.no_grad():
        F.scaled_dot_product_attention(query, key, key)
    assert count.by_type == {"fp32": 2 * (2 * 4 * 3 * 6 * 8 * 2)}
    with FlopCount() as count:
        query.requires_grad_()
        F.scaled_dot_product_attention(query, key, key).sum().backward()
    assert count.by_type == {"fp32": 7 * (2 * 4 * 3 * 6 * 8 * 2)}  # five products on the way back


def test_operations_of_reading_a_source_are_those_counted_by_hand() -> None:
    sizes = {"embedding_size": 5, "hidden_size": 7, "alignment_size": 4, "decoder_layers": 2}
    network = Attentional(AttentionalConfig(source_vocab_size=11, vocab_size=9, **sizes)).eval()
    model = AttentionalSeq2Seq(network.requires_grad_(False))
    batch, read = 2, 4  # three words and their end
    source = Hard(torch.full((batch, read - 1), 5), torch.ones(batch, read - 1, dtype=torch.bool))
    with FlopCount() as count:
        model.encode(source)
    keys = 2 * batch * read * (2 * 7) * 4
    values = 2 * batch * read * (2 * 7) * (5 * 7)
    starts = 2 * (2 * batch * (2 * 7) * (2 * 7))
    assert count.by_type == {"fp32": 2 * lstm(batch, read, 5, 7) + keys + values + starts}


def test_half_precision_is_counted_by_itself() -> None:
    left, right = torch.ones(2, 3), torch.ones(3, 5)
    with FlopCount() as count:
        left @ right
        with torch.autocast("cpu", torch.bfloat16):
            left @ right
    assert count.by_type == {"fp32": 60, "bf16": 60}


def test_the_roofline_adds_what_each_kind_of_number_takes() -> None:
    assert roofline({"fp32": 6.0, "bf16": 8.0}, {"fp32": 3.0, "bf16": 4.0}) == 4.0
    assert roofline({"fp64": 6.0}, {"fp32": 3.0, "bf16": 4.0}) == 2.0
    timing = products(torch.float32, "cpu", seconds=0.01)
    assert timing.amount % (2 * 1024**3) == 0
    assert timing.amount > 0


def test_systems_are_named_as_settings() -> None:
    config = system("eg:bilingual:iterations=4:exact=yes", batch_size=2).config
    assert (config.decoder, config.objective, config.iterations) == ("eg", "bilingual", 4)
    assert (config.exact, config.batch_size) == (True, 2)
    assert system("rerank:joint").config.beam_size == 100
    assert system("rerank:joint:beam_size=7").config.beam_size == 7
    names = ("beam", "beam:beam_size=6", "greedy", "eg")
    assert [name for name in names if system(name).is_beam()] == ["beam"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gready", "gready"),
        ("eg:juint", "juint"),
        ("eg:joint:iteration=4", "did you mean 'iterations'"),
        ("eg:joint:init=file:init_file=x", "cannot start from a file"),
    ],
)
def test_an_unknown_system_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        system(name)


@pytest.mark.parametrize("architecture", ["attentional", "transformer"])
def test_random_families_write_as_much_as_they_read(architecture: Any) -> None:
    sizes = replace(SMALL, architecture=architecture)
    family, lines = random_family(sizes), random_lines(sizes, 3, 7)
    assert len(family["reverse"].target) == 60
    assert {len(line.split()) for line in lines} == {7}
    edits = "edits:joint:beam_size=2:insertions=0:deletions=0"
    for name in ("beam", "rerank:joint:beam_size=4", "eg:joint:iterations=1", edits):
        found = best(translator(system(name), family, as_long=True), lines)
        assert max(len(hypothesis.ids) for hypothesis in found) <= 7, name
    with pytest.raises(UsageError, match="random weights start from"):
        translator(system("eg:joint:init=rerank"), family, as_long=True)


def test_random_families_repeat() -> None:
    source = Hard(torch.full((2, 5), 9), torch.ones(2, 5, dtype=torch.bool))
    attentional = replace(SMALL, architecture="attentional")
    states = [random_family(attentional)["l2r"].model.encode(source).values for _ in range(2)]
    assert torch.equal(*states)
    other = random_family(replace(attentional, seed=9))["l2r"].model.encode(source).values
    assert not torch.equal(states[0], other)


@pytest.fixture
def task() -> Task:
    """Random sentences for a random Transformer."""
    member = random_family(replace(SMALL, members=("l2r",)))["l2r"]
    sources = [member.source.encode(line) for line in random_lines(SMALL, 5, 6)]
    return Task(member, sources, BeamSettings(size=4, max_ratio=1, max_extra=0), 2, 1)


def test_generate_finds_what_we_find(task: Task) -> None:
    mine = [ours(task.member, task.settings, batch) for batch in task.batches()]
    with ExitStack() as stack:
        assert PEERS["generate"](task, stack)() == mine


def test_ctranslate2_finds_what_we_find(task: Task) -> None:
    pytest.importorskip("ctranslate2")
    mine = [ours(task.member, task.settings, batch) for batch in task.batches()]
    with ExitStack() as stack:
        found = PEERS["ctranslate2"](task, stack)()
    pieces = [[task.member.target.pieces(ids) for ids in batch] for batch in mine]
    assert [[result.hypotheses[0] for result in batch] for batch in found] == pieces


def test_a_peer_that_is_missing_is_left_out(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    said: list[str] = []
    with ExitStack() as stack:
        assert [n for n, _ in peers(task, ("ctranslate2", "pymarian"), stack, said.append)] == []
    assert said == [
        "ctranslate2 is left out: ctranslate2 is not installed.",
        "pymarian is left out: it needs a model of its own; name the folder of one with --marian.",
    ]


def test_an_empty_marian_folder_is_refused(task: Task, tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(SimplexityError, match="holds no Marian model"):
        PEERS["pymarian"](replace(task, marian=tmp_path), stack)


def test_peers_for_transformers_leave_other_networks_alone(
    task: Task, tiny_family: Callable[..., Family]
) -> None:
    said: list[str] = []
    other = replace(task, member=tiny_family()["l2r"])
    with ExitStack() as stack:
        assert [n for n, _ in peers(other, ("generate", "ctranslate2"), stack, said.append)] == []
    assert len(said) == 2
    assert all("Marian's architecture" in line for line in said)


ONES = "__import__('torch').ones({} << 18)"
MEMORY = "__import__('simplexity.bench.memory', fromlist=['memory'])"
HOLDS_100_MIB = (
    f"0 * int({ONES.format(300)}.sum()) + {MEMORY}.peak_above(lambda: {ONES.format(100)}, 'cpu')"
)


def test_memory_is_what_the_work_held() -> None:
    """By `eval`, as a young process finds no function of a test; more was held and freed before."""
    assert 95 < in_young_process(eval, HOLDS_100_MIB, 1) / 2**20 < 130


def test_a_fault_in_a_young_process_is_told() -> None:
    wrong = "__import__('simplexity.bench.systems', fromlist=['systems']).system('no')"
    with pytest.raises(UsageError, match="The system 'no' is none"):
        in_young_process(eval, wrong, 1)


def test_a_process_that_dies_is_told() -> None:
    with pytest.raises(SimplexityError, match="without an answer"):
        in_young_process(os._exit, 3, 1)


def test_a_point_of_a_curve_has_time_and_memory() -> None:
    point = Point("eg:forward", SMALL, length=5, batch=2, device="cpu").at("iterations", 2)
    found = measure_point(point.at("terms", 2))
    assert found["batch"] == 2
    assert found["seconds"] > 0
    assert found["memory_bytes"] >= 0
    changed = point.at("vocabulary", 99).at("length", 8).at("batch", 3)
    assert (changed.sizes.vocabulary, changed.length, changed.batch) == (99, 8, 3)


def test_growth_is_the_exponent() -> None:
    assert growth([(10, 7.0), (20, 14.0), (80, 56.0)]) == pytest.approx(1)
    assert growth([(10, 7.0), (20, 7.0)]) == pytest.approx(0)
    assert growth([(1, 1.0)]) is None
    assert growth([(1, 1.0), (2, 0.0)]) is None


def test_turns_begin_with_another_in_each_round() -> None:
    order: list[str] = []

    def work(name: str) -> Callable[[], Timing]:
        return lambda: (order.append(name), Timing(6, float(len(order)), 2.0))[1]

    found = by_turns(2, {name: work(name) for name in "ab"}, lambda _: None)
    assert order == ["a", "b", "b", "a"]
    assert found["a"]["per_second"] == pytest.approx((6 / 1 + 6 / 4) / 2)
    assert found["b"]["per_cpu_second"] == 3


def report() -> dict[str, Any]:
    """Two systems; the second takes thrice as long, and twice what its products need."""
    speeds = {"beam": 30.0, "eg:joint": 10.0}
    rows: dict[str, dict[str, Any]] = {
        name: {"per_second": speed / 2, "per_cpu_second": speed} for name, speed in speeds.items()
    }
    inside = {"phases": dict.fromkeys(PHASES, 1 / 7), "flops": {"fp32": 5e6}, "roofline": 0.05}
    rows["eg:joint"] |= {**inside, "memory_bytes": 3 << 20, "iterations": 8.0}
    setting = {"processor": "P", "cores": 2, "threads": 1, "load": [0.5, 0.5, 0.5]}
    return {
        "machine": {**setting, "versions": {"simplexity": "1"}},
        "settings": {"batch_size": 4, "rounds": 2},
        "sentences": 9,
        "timed_by": "per_cpu_second",
        "rates": {"fp32": 1e11, "bf16": 4e11},
        "rows": compared(rows, ["beam"], "per_cpu_second"),
    }


def test_the_table_has_ratios_and_the_distance_to_the_roofline() -> None:
    text = render(report(), "text")
    assert "| eg:joint |         5.0 | 100.00 |   3.00 |" in text
    last = next(line for line in text.splitlines() if line.endswith("2.00 |"))
    cells = [cell.strip() for cell in last.split("|")[1:-1]]
    shares = ["42.9%", *["14.3%"] * 4]
    assert cells == ["eg:joint", "8.0", *shares, "3", "5", "0", "50.00", "2.00"]
    assert "matrix products, GFLOP/s: fp32 100, bf16 400" in text
    assert json.loads(render(report(), "json"))["rows"]["eg:joint"]["times"]["beam"] == 3.0


def test_columns_stand_below_one_another() -> None:
    lines = aligned([["name", "n"], ["a", "100"], ["bcdef", "2"]])
    assert lines == ["| name  |   n |", "| ----- | --: |", "| a     | 100 |", "| bcdef |   2 |"]


def test_iterations_are_told_where_there_are_any(tiny_family: Callable[..., Family]) -> None:
    def mean(name: str) -> float | None:
        return mean_iterations(best(translator(system(name), tiny_family(), False), LINES))

    assert mean("beam") is None
    assert mean("eg:forward:iterations=5") == 5
