"""What the paper claims, each judged by a rule from the figures of an experiment.

A rule sees the results alone, and none is judged whose figures are not there. Verdicts are
"reproduced", "partly" and "not reproduced"; significance is p < 0.05 of a paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Results = dict[str, Any]
Verdict = Literal["reproduced", "partly", "not reproduced"]

TIGHT = 0.05
"""Nats a word by which continuous and discrete costs may differ."""
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """A claim in our words, the rule that judges it, the figures it saw, and what came of it."""

    name: str
    claim: str
    rule: str
    figures: str
    verdict: Verdict


def grade(*tests: bool) -> Verdict:
    """Reproduced if all hold, partly if some do.

    >>> grade(True, False)
    'partly'
    """
    return "reproduced" if all(tests) else "partly" if any(tests) else "not reproduced"


def judged(found: Results) -> list[Claim]:
    """The claims whose figures are there."""
    return [judge(found) for needs, judge in CLAIMS if all(name in found for name in needs)]


def starts(found: Results) -> Claim:
    """Beam before greedy before uniform."""
    curves = {name: found["figure1"][f"EG {name}"] for name in ("uniform", "greedy", "beam")}
    cost = {name: curve["discrete"][-1] for name, curve in curves.items()}
    bleu = {name: curve["bleu"][-1] for name, curve in curves.items()}
    return Claim(
        "starts",
        "EG ends better from beam search than from greedy search, and worst from uniform.",
        "final discrete cost a word, and BLEU, in this order: reproduced if both, partly if one",
        f"cost {_list(cost, 3)}; BLEU {_list(bleu, 1)}",
        grade(
            cost["beam"] < cost["greedy"] < cost["uniform"],
            bleu["beam"] > bleu["greedy"] > bleu["uniform"],
        ),
    )


def step_size(found: Results) -> Claim:
    """A step of 400 against 40."""
    small, large = (found["figure1"][name] for name in ("EG uniform", "EG-400 uniform"))
    gain = large["bleu"][-1] - small["bleu"][-1]
    return Claim(
        "step size",
        "From a uniform start the step size decides: 400 ends some 10 BLEU above the usual one.",
        "BLEU rises by 5 or more: reproduced; by 1 or more: partly",
        f"{small['bleu'][-1]:.1f} with 40, {large['bleu'][-1]:.1f} with 400",
        "reproduced" if gain >= 5 else "partly" if gain >= 1 else "not reproduced",
    )


def momentum(found: Results) -> Claim:
    """Momentum needs fewer iterations."""
    plain, fast = (found["figure1"][name] for name in ("EG beam", "EG-MOM beam"))
    target = plain["continuous"][-1]
    needed, usual = reaches(fast["continuous"], target), reaches(plain["continuous"], target)
    return Claim(
        "momentum",
        "With momentum EG converges in fewer iterations (about 35 against 100).",
        "iterations until the final continuous cost of plain EG, within 1% of the way there: "
        "reproduced if half as many or fewer, partly if fewer",
        f"{_iterations(needed)} with momentum, {_iterations(usual)} without",
        grade(_at_most(needed, usual, 1.0), _at_most(needed, usual, 0.5)),
    )


def reaches(costs: Sequence[float], target: float) -> int | None:
    """After how many iterations 99% of the way from the first cost to the target is done."""
    limit = target + 0.01 * abs(costs[0] - target)
    return next((t for t, cost in enumerate(costs) if cost <= limit), None)


def _at_most(needed: int | None, usual: int | None, share: float) -> bool:
    """Whether something took less than all, or no more than this share, of what is usual."""
    if needed is None or usual is None:
        return False
    return needed < usual if share == 1 else needed <= share * usual


def _iterations(number: int | None) -> str:
    return "never" if number is None else str(number)


def tight(found: Results) -> Claim:
    """Continuous and discrete costs agree."""
    points = found["figure2"]["points"]
    share = sum(abs(a - b) <= TIGHT for a, b in points) / len(points)
    return Claim(
        "relaxation",
        "In almost all sentences the continuous and the discrete cost are the same.",
        f"share of sentences where they differ by {TIGHT} a word or less: reproduced from 90%, "
        "partly from 60%",
        f"{share:.0%} of {len(points)}",
        "reproduced" if share >= 0.9 else "partly" if share >= 0.6 else "not reproduced",
    )


def better_than_sgd(found: Results) -> Claim:
    """EG against SGD in the paper's setting."""
    eg, sgd = found["figure3"]["paper"]["EG"], found["figure3"]["paper"]["SGD"]
    needed = reaches(eg["continuous"], sgd["continuous"][-1])
    usual = reaches(sgd["continuous"], sgd["continuous"][-1])
    return Claim(
        "EG and SGD",
        "With the same step and momentum EG ends at lower costs and higher BLEU than SGD, sooner.",
        "final discrete cost, BLEU, and iterations until SGD's final continuous cost: reproduced "
        "if all three are better or equal, partly if some",
        f"cost {eg['discrete'][-1]:.3f} and {sgd['discrete'][-1]:.3f}; BLEU {eg['bleu'][-1]:.1f} "
        f"and {sgd['bleu'][-1]:.1f}; {_iterations(needed)} and {_iterations(usual)} iterations",
        grade(
            eg["discrete"][-1] <= sgd["discrete"][-1],
            eg["bleu"][-1] >= sgd["bleu"][-1],
            needed is not None and usual is not None and needed <= usual,
        ),
    )


def beside_l2r(found: Results, other: str) -> list[tuple[float, float]]:
    """BLEU of the left-to-right search and of another row, from greedy and from beam search."""
    return [
        (half["rows"][f"{start} l2r"]["bleu"], half["rows"][other.format(start)]["bleu"])
        for start, half in found["table2"].items()
    ]


def directions(found: Results) -> Claim:
    """The right-to-left model is the worse one."""
    pairs = beside_l2r(found, "{} r2l")
    return Claim(
        "directions",
        "The right-to-left model alone is worse than the left-to-right one.",
        "BLEU of greedy and of beam search: reproduced if both, partly if one",
        "; ".join(f"{a:.2f} against {b:.2f}" for a, b in pairs),
        grade(*(a > b for a, b in pairs)),
    )


def single_model(found: Results) -> Claim:
    """EG with one model improves on its start."""
    pairs = beside_l2r(found, "EG from {}")
    return Claim(
        "one model",
        "EG with the left-to-right model alone gains a little over the search it starts from.",
        "BLEU from greedy and from beam: reproduced if both are higher, partly if one",
        "; ".join(f"{a:.2f} to {b:.2f}" for a, b in pairs),
        grade(*(b > a for a, b in pairs)),
    )


def significant_gain(objective: str) -> Callable[[Results], Claim]:
    """A joint objective gains significantly."""

    def judge(found: Results) -> Claim:
        halves = found["table2"]
        rows = {start: half["rows"][f"+{objective}"] for start, half in halves.items()}
        base = {start: half["rows"][half["baseline"]]["bleu"] for start, half in halves.items()}
        return Claim(
            objective,
            f"The {objective} objective gains significantly over the best greedy or beam search.",
            f"BLEU higher with p < {LEVEL}, from greedy and from beam: reproduced if both, partly "
            "if one",
            "; ".join(
                f"from {start} {base[start]:.2f} to {row['bleu']:.2f} (p = {row['p']:.3f})"
                for start, row in rows.items()
            ),
            grade(*(row["better"] for row in rows.values())),
        )

    return judge


def length_kept(found: Results) -> Claim:
    """EG from beam against filtered reranking."""
    rows = found["table3"]["bidirectional"]
    eg, rerank = rows["EG from beam"], rows["filtered rerank"]
    significant = eg["p_rerank"] < LEVEL
    higher = eg["bleu"] >= rerank["bleu"]
    return Claim(
        "lengths kept",
        "From the beam's best, EG is better than reranking strings that are no longer than it.",
        "BLEU higher: reproduced; lower, but not significantly: partly",
        f"EG {eg['bleu']:.2f}, filtered reranking {rerank['bleu']:.2f} (p = {eg['p_rerank']:.3f})",
        "reproduced" if higher else "not reproduced" if significant else "partly",
    )


def best_of_all(found: Results) -> Claim:
    """EG from the reranked best."""
    rows = found["table3"]["bidirectional"]
    last, full = rows["EG from rerank"], rows["full rerank"]
    return Claim(
        "from reranking",
        "EG from the reranked best is the best system of all.",
        "highest BLEU of Table 3: reproduced; at least that of reranking: partly",
        f"EG from rerank {last['bleu']:.2f}, reranking {full['bleu']:.2f} "
        f"(p = {last['p_rerank']:.3f}), others up to "
        f"{max(row['bleu'] for name, row in rows.items() if name != 'EG from rerank'):.2f}",
        "reproduced"
        if all(last["bleu"] >= row["bleu"] for row in rows.values())
        else "partly"
        if last["bleu"] >= full["bleu"]
        else "not reproduced",
    )


def comparable_cost(found: Results) -> Claim:
    """EG and reranking take about as long."""
    rerank = found["table3"]["cpu_ms"]
    eg = found["table3"]["joint"]["EG from beam"]["cpu_ms"]
    return Claim(
        "time of reranking",
        "EG takes about as long as reranking a list, and less where lists are long.",
        "processor time a sentence, joint objective, search included: reproduced if EG takes no "
        "longer, partly up to twice as long",
        f"EG {eg:.0f} ms, reranking {found['table3']['size']} strings {rerank:.0f} ms",
        "reproduced" if eg <= rerank else "partly" if eg <= 2 * rerank else "not reproduced",
    )


def backward(found: Results) -> Claim:
    """The backward pass is the dearest."""
    row = found["timing"]["EG bidirectional, 8 iterations"]
    return Claim(
        "backward pass",
        "Most of EG's time goes into the backward pass (2.2 times the forward pass).",
        "backward takes longer than forward and update together: reproduced; than forward: partly",
        f"forward {row['forward']:.1f} ms, backward {row['backward']:.1f} ms, update "
        f"{row['update']:.1f} ms",
        grade(
            row["backward"] > row["forward"] + row["update"],
            row["backward"] > row["forward"],
        ),
    )


def _list(values: dict[str, float], digits: int) -> str:
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


CLAIMS: tuple[tuple[tuple[str, ...], Callable[[Results], Claim]], ...] = (
    (("figure1",), starts),
    (("figure1",), step_size),
    (("figure1",), momentum),
    (("figure2",), tight),
    (("figure3",), better_than_sgd),
    (("table2",), directions),
    (("table2",), single_model),
    (("table2",), significant_gain("bidirectional")),
    (("table2",), significant_gain("bilingual")),
    (("table3",), length_kept),
    (("table3",), best_of_all),
    (("table3",), comparable_cost),
    (("timing",), backward),
)
