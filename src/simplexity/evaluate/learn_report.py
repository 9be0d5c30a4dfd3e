"""What was learnt or chosen, as text for people or JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from simplexity.evaluate.learn import Chosen, Learnt
from simplexity.evaluate.significance import Difference
from simplexity.search.rerank import show_weights


def render_learnt(learnt: Learnt, flags: str, style: str) -> str:
    """The weights and their gains; `flags` are what else it takes to rerank by them."""
    start, weights = show_weights(learnt.start), show_weights(learnt.weights)
    if style == "json":
        return _json({**asdict(learnt), "flags": f"--objective {weights} {flags}"})
    lists = f"{learnt.sentences} sentences, {learnt.hypotheses} hypotheses"
    return _joined(
        f"{learnt.metric}, {lists}",
        f"  one-best  {learnt.one_best:7.2f}",
        f"  start     {learnt.before:7.2f}  {start}",
        f"  learnt    {learnt.after:7.2f}  {weights}",
        *_gains(learnt.gain, learnt.held_out, "the start"),
        *(
            ["a weight is below 0: such weights are for reranking only"]
            if min(learnt.weights.values()) < 0
            else []
        ),
        f"--objective {weights} {flags}",
    )


def render_chosen(chosen: Chosen, flag: str, style: str) -> str:
    """All candidates and the gain of the best; `flag` is what sets it."""
    if style == "json":
        return _json({**asdict(chosen), "flags": f"{flag} {chosen.best}"})
    rows = [chosen.start, *chosen.candidates]
    width = max(len("setting"), *(len(row.label) for row in rows))
    return _joined(
        f"{'setting':{width}}  {chosen.metric:>10}  {'mean cost':>9}  seconds",
        *(
            f"{row.label:{width}}  {row.score:10.2f}  {row.cost:9.4f}  {row.seconds:7.1f}"
            + ("  best" if row.label == chosen.best else "")
            for row in rows
        ),
        *_gains(chosen.gain, chosen.held_out, chosen.baseline),
        f"{flag} {chosen.best}",
    )


def _gains(gain: Difference, held_out: Difference | None, baseline: str) -> list[str]:
    lines = [f"gain over {baseline}: {_difference(gain)}, on the data it was chosen on"]
    if held_out is not None:
        lines.append(f"held out: {_difference(held_out)}, on data it was not chosen on")
    return lines


def _difference(found: Difference) -> str:
    interval = f"[{found.low:+.2f}, {found.high:+.2f}]"
    return f"{found.difference:+.2f} {interval}, p = {found.p_value:.4f}"


def _json(values: dict[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _joined(*lines: str) -> str:
    return "\n".join(lines) + "\n"
