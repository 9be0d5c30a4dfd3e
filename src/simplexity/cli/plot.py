"""`simplexity plot`: a picture of a descent."""

from __future__ import annotations

from simplexity.cli.explain import told
from simplexity.config import PlotConfig


def run(config: PlotConfig) -> None:
    """Draw how a joint translation comes about, as an SVG picture.

    A heat map shows the likeliest word of each position at each iteration, the darker the more
    mass it has, in another colour where it differs from the start. Below it stand the costs: of
    the relaxed string, by term and in all, and of the string that it rounds to.
    """
    from simplexity.show.picture import drawn
    from simplexity.text.files import writing

    with writing(config.output, config.overwrite) as output:
        output.write(drawn(told(config), config.title))
