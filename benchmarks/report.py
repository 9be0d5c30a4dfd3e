"""The figures of peers.py as Markdown."""

from __future__ import annotations

from typing import Any


def render(content: dict[str, Any]) -> str:
    """A section for every step that has figures."""
    sections = []
    for step, write in (("speed", speed), ("beam", beam), ("generate", generate)):
        if step in content:
            setting = content["machine"][step]
            sections.append("\n".join([*write(content[step]), "", footnote(setting)]))
    return "\n\n".join(sections) + "\n"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def rates(found: dict[str, Any], base: dict[str, Any]) -> list[str]:
    """A second, a processor second, and the latter as a multiple of the base's."""
    times = found["per_cpu_second"] / base["per_cpu_second"]
    return [f"{found['per_second']:.1f}", f"{found['per_cpu_second']:.1f}", f"{times:.2f}"]


def speed(found: dict[str, Any]) -> list[str]:
    """Training, with the time of an epoch on a processor that does nothing else."""
    systems, base = found["systems"], found["systems"]["Marian"]
    rows = [
        [name, *rates(one, base), f"{found['epoch_words'] / one['per_cpu_second'] / 60:.1f}"]
        for name, one in systems.items()
    ]
    head = ["training", "words/s", "words/CPU s", "x Marian", "CPU minutes an epoch"]
    return [
        *table(head, rows),
        "",
        f"{found['epoch_words']} target words, ends counted, and {found['epoch_updates']} of our "
        f"updates an epoch; {found['updates']} updates a turn.",
    ]


def beam(found: dict[str, Any]) -> list[str]:
    """Translation with both attentional models."""
    systems, base = found["systems"], found["systems"]["Marian"]
    rows = [
        [
            name,
            f"{one['bleu']:.2f}",
            *rates(one, base),
            f"{one['training']['perplexity']:.3f}",
            f"{one['training']['updates']}",
            f"{one['training']['parameters'] / 1e6:.2f} M",
        ]
        for name, one in systems.items()
    ]
    head = ["beam search", "BLEU", "sentences/s", "sentences/CPU s", "x Marian"]
    marian = base["training"]
    return [
        *table([*head, "dev perplexity", "updates", "parameters"], rows),
        "",
        f"{found['sentences']} sentences; BLEU {found['signature']}, p = {found['p']:.3f} "
        f"(paired approximate randomisation). Marian was trained for {marian['seconds'] / 60:.1f} "
        f"minutes, {marian['cpu_seconds'] / 60:.1f} of the processor.",
    ]


def generate(found: dict[str, Any]) -> list[str]:
    """Two beam searches on one Transformer."""
    systems, base = found["systems"], found["systems"]["transformers"]
    head = ["Transformer", "sentences/s", "sentences/CPU s", "x transformers"]
    share = found["equal"] / found["sentences"]
    return [
        *table(head, [[name, *rates(one, base)] for name, one in systems.items()]),
        "",
        f"{found['sentences']} sentences: {share:.1%} equal strings; of the others ours scores "
        f"better in {found['better']}, worse in {found['worse']} (largest loss "
        f"{found['largest_loss']:.2g}, mean gain {found['mean_gain']:.2g} nats a word).",
    ]


def footnote(setting: dict[str, Any]) -> str:
    """With what the figures above were found."""
    versions = ", ".join(f"{name} {number}" for name, number in setting["versions"].items())
    options = setting["settings"]
    return (
        f"{versions}; {setting['processor']}, threads: {options['threads']}, beam "
        f"{options['beam']}, batches of {options['batch_size']}, medians of {options['rounds']} "
        f"turns, load {setting['load'][0]:.1f}."
    )
