"""A story as a picture: a heat map of the words above the curves of the costs, in SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from simplexity.show.story import Story

# Colours that people with any kind of colour vision tell apart (Okabe and Ito).
KEPT, CHANGED, INK, FAINT = (0, 90, 160), (213, 94, 0), "#222222", "#888888"
LINES = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#0072b2")
ROW, TOP, CURVES, MARGIN = 26.0, 84.0, 170.0, 18.0
MOST_COLUMNS = 41
LETTER = 7.2
"""Width of a letter of the text, about."""
ROOM_PER_LABEL = 14.0

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Layout:
    """Where things stand: which frames are columns, how wide these are, what is beside them."""

    frames: tuple[int, ...]
    cell: float
    left: float
    right: float
    rows: int

    @property
    def width(self) -> float:
        return self.left + self.cell * len(self.frames) + self.right

    @property
    def below(self) -> float:
        """Where the heat map ends."""
        return TOP + ROW * self.rows

    @property
    def height(self) -> float:
        return self.below + CURVES + 84

    def middle(self, column: int) -> float:
        return self.left + self.cell * (column + 0.5)


def drawn(story: Story, title: str | None = None) -> str:
    """The picture as the text of an SVG file."""
    layout = _layout(story)
    heading = story.source if title is None else title
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} '
        f'{layout.height:.0f}" width="{layout.width:.0f}" height="{layout.height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="12.5" fill="{INK}">',
        f"<title>{escape(heading)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        _text(MARGIN, 26, heading, 'font-size="15" font-weight="600"'),
        *_legend(layout),
        *_heat(story, layout),
        *_curves(story, layout),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _layout(story: Story) -> Layout:
    number = len(story.frames)
    kept = min(number, MOST_COLUMNS)
    frames = tuple(round(i * (number - 1) / max(1, kept - 1)) for i in range(kept))
    words = [word for frame in story.frames for word in frame.words]
    widest = LETTER * max(map(len, (*words, "iteration")), default=0)
    cell = min(84.0, max(720 / kept, 16.0), max(widest + 10, 34.0))
    left = MARGIN + LETTER * max(map(len, (*story.start, "start of it")), default=0) + 12
    right = MARGIN + LETTER * max(map(len, (*story.answer, "that string 00.00")), default=0) + 12
    # The heading must fit, too.
    missing = 8.2 * len(story.source) + 2 * MARGIN - (left + cell * kept + right)
    return Layout(frames, cell, left, right + max(0.0, missing), len(story.start))


def _legend(layout: Layout) -> Iterator[str]:
    x = MARGIN
    for colour, label in ((KEPT, "word of the start"), (CHANGED, "another word")):
        yield _box(x, 42, 22, 13, _shade(colour, 0.35))
        yield _box(x + 22, 42, 22, 13, _shade(colour, 0.95))
        yield _text(x + 50, 53, label, f'fill="{FAINT}"')
        x += 50 + LETTER * len(label) + 16
    yield _text(layout.left - 8, TOP - 8, "start", f'text-anchor="end" fill="{FAINT}"')
    end = layout.left + layout.cell * len(layout.frames) + 8
    yield _text(end, TOP - 8, "found", f'fill="{FAINT}"')


def _heat(story: Story, layout: Layout) -> Iterator[str]:
    for place in range(layout.rows):
        y = TOP + ROW * place
        yield _text(layout.left - 8, y + 17, story.start[place], 'text-anchor="end"')
        before = None
        for column, number in enumerate(layout.frames):
            word = story.frames[number].words[place]
            path = story.paths[place]
            mass = path[word][number] if word in path else 0.0
            colour = KEPT if word == story.start[place] else CHANGED
            x = layout.left + layout.cell * column
            yield _box(x + 0.5, y + 0.5, layout.cell - 1, ROW - 1, _shade(colour, mass))
            if word != before and LETTER * len(word) <= layout.cell + 4:
                ink = "white" if mass > 0.55 else INK
                at = layout.middle(column)
                yield _text(at, y + 17, word, f'text-anchor="middle" font-size="11.5" fill="{ink}"')
            before = word
        end = layout.left + layout.cell * len(layout.frames) + 8
        strong = 'font-weight="600"' if story.answer[place] != story.start[place] else ""
        yield _text(end, y + 17, story.answer[place], strong)


def _curves(story: Story, layout: Layout) -> Iterator[str]:
    curves = _values(story, layout)
    every = [value for _, _, values in curves for value in values]
    low, high = min(every), max(every)
    top = layout.below + 30
    spread = (high - low) or 1.0

    def height(value: float) -> float:
        return top + CURVES * (high - value) / spread

    yield _text(layout.left - 8, top + 4, f"{high:.1f}", f'text-anchor="end" fill="{FAINT}"')
    yield _text(
        layout.left - 8, top + CURVES + 4, f"{low:.1f}", f'text-anchor="end" fill="{FAINT}"'
    )
    yield _text(layout.left - 8, top + CURVES / 2, "cost", f'text-anchor="end" fill="{FAINT}"')
    right = layout.left + layout.cell * len(layout.frames)
    for y in (top, top + CURVES):
        yield f'<line x1="{layout.left}" y1="{y}" x2="{right}" y2="{y}" stroke="#dddddd"/>'
    places = _apart([height(values[-1]) for _, _, values in curves], top, top + CURVES)
    for (label, style, values), place in zip(curves, places, strict=True):
        points = " ".join(
            f"{layout.middle(i):.1f},{height(value):.1f}" for i, value in enumerate(values)
        )
        yield f'<polyline points="{points}" fill="none" {style}/>'
        colour = style.split('"')[1]
        yield _text(right + 8, place + 4, f"{label} {values[-1]:.2f}", f'fill="{colour}"')
    yield from _axis(layout, top + CURVES + 20)


def _values(story: Story, layout: Layout) -> list[tuple[str, str, list[float]]]:
    """Every curve: its name, its stroke, its values."""
    frames = [story.frames[number] for number in layout.frames]
    found = [
        (
            name,
            f'stroke="{LINES[i % len(LINES)]}" stroke-width="1.5"',
            [f.relaxed.terms[name] for f in frames],
        )
        for i, name in enumerate(story.weights)
    ]
    found.append(("Q", f'stroke="{INK}" stroke-width="3"', [f.relaxed.total for f in frames]))
    dashed = f'stroke="{FAINT}" stroke-width="2" stroke-dasharray="5 4"'
    found.append(("its string", dashed, [f.rounded.total for f in frames]))
    dotted = f'stroke="{FAINT}" stroke-width="1.5" stroke-dasharray="1 4"'
    found.append(("the start", dotted, [story.start_costs.total] * len(frames)))
    return found


def _axis(layout: Layout, y: float) -> Iterator[str]:
    shown = max(1, round(30 / layout.cell))
    for column in range(0, len(layout.frames), shown):
        number = str(layout.frames[column])
        yield _text(layout.middle(column), y, number, f'text-anchor="middle" fill="{FAINT}"')
    middle = layout.left + layout.cell * len(layout.frames) / 2
    yield _text(middle, y + 20, "iteration", f'text-anchor="middle" fill="{FAINT}"')


def _apart(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Heights of labels near those of their curves, but so far apart that all can be read.

    >>> _apart([10.0, 11.0], 0.0, 100.0)
    [10.0, 24.0]
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed: dict[int, float] = {}
    last = top - ROOM_PER_LABEL
    for i in order:
        last = max(heights[i], last + ROOM_PER_LABEL)
        placed[i] = last
    over = max(0.0, last - bottom - ROOM_PER_LABEL)
    return [placed[i] - over for i in range(len(heights))]


def _shade(colour: Colour, mass: float) -> str:
    """White where there is no mass, the colour where all of it is."""
    share = min(1.0, max(0.0, mass)) * 0.92 + 0.04
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in colour)


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" '
        f'fill="{fill}"/>'
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
