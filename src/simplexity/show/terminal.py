"""A story as lines of text, coloured if wished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from simplexity.show.story import Costs, Exchange, Story

BARS = " ▁▂▃▄▅▆▇█"
SMALLEST_WIDTH = 40


@dataclass(frozen=True)
class Palette:
    """How parts of a text are marked; without colours, they are not."""

    colours: bool

    def old(self, text: str) -> str:
        """What the start had and the answer has not."""
        return self._mark(text, "31")

    def new(self, text: str) -> str:
        """What the answer has in its place."""
        return self._mark(text, "32")

    def quiet(self, text: str) -> str:
        return self._mark(text, "2")

    def strong(self, text: str) -> str:
        return self._mark(text, "1")

    def _mark(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and text.strip() else text


def explained(story: Story, palette: Palette, width: int = 80) -> Iterator[str]:
    """All that there is to say of a descent, line by line."""
    yield from _summary(story, palette)
    yield ""
    yield palette.strong(f"Mass of the words at each position, iteration 0 to {_last(story)}")
    yield from _paths(story, palette, max(SMALLEST_WIDTH, width))
    yield ""
    yield palette.strong("Costs by term (-log P; lower is better)")
    yield from _table(story, palette)
    if story.exchanges:
        yield ""
        yield palette.strong("Each exchange alone, put into the start")
        yield from _exchanges(story, palette)
    yield ""
    yield from _reasons(story)


def _last(story: Story) -> int:
    return len(story.frames) - 1


def _summary(story: Story, palette: Palette) -> Iterator[str]:
    found = story.hypothesis
    before, after = story.start_costs.total, story.answer_costs.total
    texts = (found.initial_text or "", found.text)
    old, new = marked(texts, (palette.old, palette.new))
    room = max(map(len, texts)) + 2
    yield f"source  {story.source}"
    yield f"start   {old}{' ' * (room - len(texts[0]))}cost {before:.2f}"
    yield f"found   {new}{' ' * (room - len(texts[1]))}cost {after:.2f} ({after - before:+.2f})"


def marked(texts: tuple[str, str], marks: tuple[Callable[[str], str], ...]) -> list[str]:
    """Two texts, each with the words marked that the other has not at that place."""
    words = (texts[0].split(" "), texts[1].split(" "))
    same: tuple[set[int], set[int]] = (set(), set())
    for block in SequenceMatcher(None, words[0], words[1], autojunk=False).get_matching_blocks():
        for side, begin in enumerate((block.a, block.b)):
            same[side].update(range(begin, begin + block.size))
    return [
        " ".join(word if i in same[side] else mark(word) for i, word in enumerate(words[side]))
        for side, mark in enumerate(marks)
    ]


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Values as bars between two bounds.

    >>> sparkline([0, 0.5, 1], 0, 1)
    ' ▄█'
    """
    steps = len(BARS) - 1
    spread = (high - low) or 1.0
    return "".join(
        BARS[min(steps, max(0, round(steps * (value - low) / spread)))] for value in values
    )


def thinned(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, evenly chosen, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def _paths(story: Story, palette: Palette, width: int) -> Iterator[str]:
    room = max((len(word) for path in story.paths for word in path), default=0)
    columns = width - room - len("     ") - len("  0.00 to 0.00")
    for place, path in enumerate(story.paths):
        old, new = story.start[place], story.answer[place]
        for number, (word, masses) in enumerate(path.items()):
            mark = palette.quiet
            if old != new and word in (old, new):
                mark = palette.old if word == old else palette.new
            elif word == new:
                mark = palette.strong
            label = f"{place + 1:3}" if number == 0 else "   "
            bars = sparkline(thinned(masses, max(8, columns)), 0, 1)
            ends = f"{masses[0]:.2f} to {masses[-1]:.2f}"
            yield f"{label}  {mark(word)}{' ' * (room - len(word))}  {bars}  {palette.quiet(ends)}"


def _table(story: Story, palette: Palette) -> Iterator[str]:
    before, after = story.start_costs, story.answer_costs
    yield palette.quiet(f"{'':12}{'weight':>8}{'start':>9}{'found':>9}{'change':>9}")
    for name, weight in story.weights.items():
        old, new = before.terms[name], after.terms[name]
        yield f"{name:12}{weight:8.2f}{old:9.2f}{new:9.2f}{_change(new - old, 9, palette)}"
    old, new = before.total, after.total
    yield f"{'sum':12}{'':8}{old:9.2f}{new:9.2f}{_change(new - old, 9, palette)}"
    for label, kind in (("relaxed Q", "relaxed"), ("its string", "rounded")):
        totals = [getattr(frame, kind).total for frame in story.frames]
        # The least cost still shows a bar.
        floor = min(totals) - 0.15 * (max(totals) - min(totals) or 1.0)
        bars = sparkline(thinned(totals, 40), floor, max(totals))
        yield f"{label:12}  {bars}  {palette.quiet(f'{totals[0]:.2f} to {totals[-1]:.2f}')}"


def _change(value: float, width: int, palette: Palette) -> str:
    text = f"{value:+.2f}".rjust(width)
    if abs(value) < 0.005:
        return palette.quiet(text)
    return palette.new(text) if value < 0 else palette.old(text)


def _exchanges(story: Story, palette: Palette) -> Iterator[str]:
    names = list(story.weights)
    room = max(len(f"{e.before} > {e.after}") for e in story.exchanges)
    head = "".join(f"{name:>10}" for name in (*names, "sum"))
    yield palette.quiet(f"     {'':{room}}{head}")
    for exchange in story.exchanges:
        words = f"{palette.old(exchange.before)} > {palette.new(exchange.after)}"
        gap = " " * (room - len(f"{exchange.before} > {exchange.after}"))
        values = [*(exchange.adds.terms[name] for name in names), exchange.adds.total]
        columns = "".join(_change(value, 10, palette) for value in values)
        yield f"{exchange.place + 1:3}  {words}{gap}{columns}"


def _reasons(story: Story) -> Iterator[str]:
    """Sentences that say what changed and which models wanted it."""
    for exchange in story.exchanges:
        yield _reason(exchange)
    if story.exchanges:
        together = story.answer_costs.total - story.start_costs.total
        number = len(story.exchanges)
        if number > 1:
            yield f"Together the {number} exchanges change the sum by {together:+.2f}."
        return
    tried = {frame.text: frame.rounded for frame in story.frames if frame.words != story.start}
    if not tried:
        yield "Nothing changed: the mass stayed on the words of the start."
        return
    text, costs = min(tried.items(), key=lambda item: item[1].total)
    yield (
        f'The descent came by "{text}", which as a string costs {costs.total:.2f}, more than the '
        f"start's {story.start_costs.total:.2f}; so the start stays."
    )


def _reason(exchange: Exchange) -> str:
    def sides(costs: Costs, sign: int) -> str:
        found = [(sign * value, name) for name, value in costs.terms.items()]
        told = [
            f"{name} by {value:.2f}"
            for value, name in sorted(found, reverse=True)
            if value >= 0.005
        ]
        return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else "".join(told)

    better, worse = sides(exchange.adds, -1), sides(exchange.adds, 1)
    told = [f"cheaper for {better}" * bool(better), f"dearer for {worse}" * bool(worse)]
    what = f'"{exchange.after}" for "{exchange.before}" at position {exchange.place + 1}'
    return f"{what} is {', '.join(part for part in told if part) or 'as dear as before'}."
