"""`simplexity evaluate`: one table for one or more systems."""

from __future__ import annotations

from simplexity.config import EvaluateConfig


def run(config: EvaluateConfig) -> None:
    """Compare translations with references.

    BLEU ignores case unless it is bleu-cased. Lengths are in words, as BLEU counts them. With a
    baseline, every other system is tested against it.
    """
    from simplexity.evaluate.metrics import metric_named
    from simplexity.evaluate.tables import compare, render
    from simplexity.text.files import read_lines, writing

    before = () if config.baseline is None else (config.baseline,)
    systems = {
        str(file): list(read_lines(file)) for file in dict.fromkeys((*before, *config.hypotheses))
    }
    table = compare(
        systems,
        [list(read_lines(file)) for file in config.references],
        [metric_named(name, config.tokenize) for name in config.metrics],
        baseline=None if config.baseline is None else str(config.baseline),
        test=config.test,
        samples=config.samples,
        seed=config.seed,
    )
    with writing(config.output, config.overwrite) as output:
        output.write(render(table, config.format))
