"""`simplexity bench`: what decoders cost, side by side."""

from __future__ import annotations

from simplexity.config import BenchConfig
from simplexity.runtime import keep_memory, use_threads


def run(config: BenchConfig) -> None:
    """Measure what decoders cost, side by side.

    Every system and every peer translates the same sentences by turns, so that a busy machine slows
    all alike. The table has their speeds and ratios; what share of the time goes to the start
    (search, reading, first predictions), to passes forward and back over soft strings, to scores of
    the strings that these round to, and to updates and the rest; the most memory above the models;
    and the roofline: the time that the matrix products of a run take at the rate that this machine
    reached in the same run. With --random no trained models are needed.
    """
    keep_memory()
    use_threads(config.threads)
    import torch

    from simplexity.bench.curves import measure_curves
    from simplexity.bench.run import measure
    from simplexity.bench.table import render
    from simplexity.cli.progress import Progress
    from simplexity.text.files import writing

    torch.manual_seed(config.seed)
    with (
        writing(config.output, config.overwrite) as output,
        Progress("measuring", quiet=config.quiet) as progress,
    ):
        report = (measure_curves if config.curves else measure)(config, progress.say)
        output.write(render(report, config.output_type))
