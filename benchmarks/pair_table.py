"""Two translation models that share nothing, and a language model: `generate` beside relaxation.

    python benchmarks/pair_table.py FORWARD REVERSE SOURCE REFERENCE --plain FWD --output NAME

FORWARD and REVERSE are whatever `simplexity translate --forward --reverse` takes, FWD the forward
model as a plain directory of transformers (`simplexity export`). The test set is cut into parts,
and every part is given to all systems in turn, so that a busy machine slows all of them alike. With
`--ct2` CTranslate2 joins, with `--lm` a language model; `--dev SOURCE REFERENCE` only tries all
weights and steps that are given there, by EG, and says which is best; else the first of each holds.
NAME.json has all figures and strings, NAME.md the table:

p           paired approximate randomisation of BLEU against `generate`
cost        of the start and of the answer under the row's own objective: nats a sentence, or nats a
            word (edits), exact, of the text
-log p      nats a sentence of the answers by each model, to compare rows
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from plain import BATCH, Decode, ctranslate2, generate

import simplexity
from simplexity.api import Loaded
from simplexity.bench.setting import machine
from simplexity.bench.turns import NONE, Timing, timed
from simplexity.decode import Hypothesis
from simplexity.evaluate.metrics import from_sufficient, metric_named, sufficient
from simplexity.evaluate.significance import approximate_randomisation
from simplexity.relax.tokens import pad_batch
from simplexity.runtime import keep_memory, use_threads
from simplexity.text.files import read_lines

BLEU = metric_named("bleu", "13a")
GENERATE = "generate, beam 5"
CTRANSLATE2 = "CTranslate2, beam 5"
OURS = "ours, beam 5"
Answers = tuple[list[str], list[Hypothesis]]


@dataclass
class System:
    """A decoder, what it found so far, and the time that it took."""

    decode: Callable[[list[str]], Answers]
    texts: list[str] = field(default_factory=list)
    found: list[Hypothesis] = field(default_factory=list)
    time: Timing = NONE

    def take(self, lines: list[str]) -> None:
        """Translate a part of the test set."""
        spent, (texts, found) = timed(len(lines), partial(self.decode, lines))
        self.time += spent
        self.texts += texts
        self.found += found


def ours(loaded: Loaded, settings: dict[str, Any], lines: list[str]) -> Answers:
    """By `simplexity`."""
    found = loaded.translate(lines, **settings)
    return [hypothesis.text for hypothesis in found], found


def theirs(decode: Decode, lines: list[str]) -> Answers:
    """By another program."""
    return decode(lines), []


def objective(reverse: float, lm: float) -> str:
    """Weights of a mixture; the forward model has what is left."""
    parts = {"l2r": 1 - reverse - lm, "reverse": reverse, "lm": lm}
    return ",".join(f"{name}={weight:g}" for name, weight in parts.items() if weight)


def systems(loaded: Loaded, given: argparse.Namespace) -> dict[str, System]:
    """All rows of the table."""
    decoders: dict[str, Callable[[list[str]], Answers]] = {
        GENERATE: partial(theirs, generate(given.plain, num_beams=5, length_penalty=1.0))
    }
    if given.ct2:
        decoders[CTRANSLATE2] = partial(theirs, ctranslate2(given.plain, given.ct2))
    decoders[OURS] = partial(ours, loaded, {"objective": "l2r=1", "decoder": "beam"})
    mixtures = {"with reverse": objective(given.reverse_weight[0], 0)}
    if given.lm:
        mixtures["with lm"] = objective(0, given.lm_weight[0])
        mixtures["with both"] = objective(given.reverse_weight[0], given.lm_weight[0])
    kinds: dict[str, dict[str, Any]] = {
        "eg": {"decoder": "eg", "step": given.step[0]},
        "edits": {"decoder": "edits"},
        "rerank 30": {"decoder": "rerank", "beam_size": 30},
    }
    for (mixture, weights), (kind, settings) in product(mixtures.items(), kinds.items()):
        whole = {"objective": weights, "batch_size": BATCH, **settings}
        decoders[f"{kind}, {mixture}"] = partial(ours, loaded, whole)
    kept = {n: d for n, d in decoders.items() if n == GENERATE or n not in given.leave_out}
    return {name: System(decode) for name, decode in kept.items()}


def log_probs(
    loaded: Loaded, lines: list[str], every: dict[str, System]
) -> dict[str, dict[str, float]]:
    """-log p of the texts of every system by each model, mean nats a sentence."""
    out: dict[str, dict[str, float]] = {}
    for name, system in every.items():
        pairs = list(zip(lines, system.texts, strict=True))
        out[name] = {
            member: -mean(s.total for s in loaded.score(pairs, member))
            for member in loaded.family.members
        }
        if loaded.family.lm is not None:
            out[name]["lm"] = mean(fluency(loaded, system.texts))
    return out


@torch.no_grad()
def fluency(loaded: Loaded, texts: list[str]) -> Iterable[float]:
    judge = loaded.family.fluency()
    for first in range(0, len(texts), BATCH):
        ids = [judge.vocabulary.encode(text) for text in texts[first : first + BATCH]]
        yield from (-judge.model.log_prob(pad_batch(ids, 0))).tolist()


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def bleu(texts: list[str], references: list[str]) -> float:
    return float(from_sufficient(BLEU, sufficient(BLEU, texts, [references]).sum(0)))


def choose(loaded: Loaded, given: argparse.Namespace) -> list[dict[str, Any]]:
    """BLEU on development sentences for some weights and steps."""
    lines, references = (list(read_lines(path))[: given.dev_limit] for path in given.dev)
    tried = []
    lms = given.lm_weight if given.lm else (0.0,)
    for reverse, lm, step in product(given.reverse_weight, lms, given.step):
        settings = {"objective": objective(reverse, lm), "decoder": "eg", "step": step}
        found = bleu(ours(loaded, settings, lines)[0], references)
        tried.append({**settings, "bleu": found})
        print(f"dev: {tried[-1]}", flush=True)
    print(f"best on dev: {max(tried, key=lambda trial: trial['bleu'])}")
    return tried


def figures(
    every: dict[str, System], by_model: dict[str, dict[str, float]], references: list[str]
) -> dict[str, dict[str, Any]]:
    """The rows of the table."""
    counts = {n: sufficient(BLEU, s.texts, [references]) for n, s in every.items()}
    rows = {}
    for name, system in every.items():
        test = approximate_randomisation(counts[name], counts[GENERATE], BLEU, samples=2000)
        row: dict[str, Any] = {
            "bleu": float(from_sufficient(BLEU, counts[name].sum(0))),
            "p": float(test.p_value) if name != GENERATE else None,
            "differing": sum(
                a != b for a, b in zip(system.texts, every[GENERATE].texts, strict=True)
            ),
            "cpu_ms": 1000 * system.time.cpu_seconds / len(references),
            "ms": 1000 * system.time.seconds / len(references),
            "by_model": by_model[name],
        }
        pairs = [(h.initial_cost, h.discrete_cost) for h in system.found]
        known = [(a, b) for a, b in pairs if a is not None]
        if known:
            row["before"], row["after"] = (mean(column) for column in zip(*known, strict=True))
            row["better"] = sum(b < a - 1e-4 for a, b in known)
            row["worse"] = sum(b > a + 1e-4 for a, b in known)
        rows[name] = row
    return rows


def markdown(rows: dict[str, dict[str, Any]]) -> str:
    """The table."""
    models = list(rows[GENERATE]["by_model"])
    heads = ["system", "BLEU", "p", "differing", "cost before", "after", "better", "worse"]
    heads += [*(f"-log p {name}" for name in models), "CPU ms"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        cells = [name, f"{row['bleu']:.2f}", "" if row["p"] is None else f"{row['p']:.3f}"]
        cells.append(str(row["differing"]))
        if "before" in row:
            cells += [f"{row['before']:.3f}", f"{row['after']:.3f}"]
            cells += [str(row["better"]), str(row["worse"])]
        else:
            cells += [""] * 4
        cells += [*(f"{row['by_model'][m]:.2f}" for m in models), f"{row['cpu_ms']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("forward", "reverse"):
        parser.add_argument(name)
    for name in ("source", "reference"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--plain", type=Path, required=True, help="the forward model, exported")
    parser.add_argument("--ct2", type=Path, help="the same, converted for CTranslate2")
    parser.add_argument("--lm", help="a causal model or an ARPA file")
    parser.add_argument("--dev", type=Path, nargs=2, help="choose weights and step here, and stop")
    parser.add_argument("--dev-limit", type=int, default=200)
    parser.add_argument("--reverse-weight", type=float, nargs="+", default=[0.5])
    parser.add_argument("--lm-weight", type=float, nargs="+", default=[0.2])
    parser.add_argument("--step", type=float, nargs="+", default=[1.0])
    parser.add_argument("--leave-out", action="append", default=[], help="a system, by its name")
    parser.add_argument("--limit", type=int, help="so many sentences only")
    parser.add_argument("--part", type=int, default=250, help="sentences given in a turn")
    parser.add_argument("--output", type=Path, required=True, help="results, without suffix")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    keep_memory()
    use_threads(None)
    loaded = simplexity.load(given.forward, given.reverse, given.lm, device="cpu")
    if given.dev:
        tried = choose(loaded, given)
        given.output.with_suffix(".json").write_text(json.dumps(tried, indent=1) + "\n")
        return
    lines, references = (
        list(read_lines(path))[: given.limit] for path in (given.source, given.reference)
    )
    every = systems(loaded, given)
    every[GENERATE].decode(lines[:BATCH])  # warm up
    for number, first in enumerate(range(0, len(lines), given.part)):
        for name, system in every.items():
            system.take(lines[first : first + given.part])
            print(f"part {number + 1}, {name}: {system.time.cpu_seconds:.1f} s", flush=True)
    rows = figures(every, log_probs(loaded, lines, every), references)
    print(markdown(rows))
    content = {
        "machine": machine(),
        "sentences": len(lines),
        "given": {key: str(value) for key, value in vars(given).items()},
        "rows": rows,
        "texts": {name: system.texts for name, system in every.items()},
    }
    given.output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
    given.output.with_suffix(".md").write_text(markdown(rows))


if __name__ == "__main__":
    main()
