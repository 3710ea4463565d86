"""Where the marks of a plot are: pure arithmetic; the template `plot.svg` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap
from typing import Final

WIDTH: Final = 360
LEFT, RIGHT, TOP, BOTTOM = 40, 352, 10, 180
MOST_GROUPS: Final = 5
"""Groups of bars that one drawing has room for; a drawing is as wide as a phone."""

_CHARACTER, _LINE, _MOST_LINES = 6.2, 12, 4
"""The width of a character, the height of a line, and how many lines a label has."""

_BARS: Final = 0.8
"""The share of its room that a group of bars takes."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number, with the interval in which it is, where that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place of an axis, in lines."""

    at: float
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A dot, or a bar if it has a width; `whisker` is the path of its interval, empty for none."""

    x: float
    y: float
    text: str
    width: float = 0.0
    height: float = 0.0
    whisker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The marks of one target; `line` are the points of the line through its dots, empty for bars."""

    colour: int
    marks: Sequence[Mark]
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that the template writes."""

    labels: Sequence[Label]
    ticks: Sequence[Label]
    series: Sequence[Drawn]
    height: int
    width: int = WIDTH
    left: int = LEFT
    right: int = RIGHT
    bottom: int = BOTTOM


@dataclass(frozen=True, slots=True)
class Scale:
    """The y axis from `low` to `high`; logarithmic in powers of ten, or linear."""

    low: float
    high: float
    logarithmic: bool = False

    def y(self, value: float) -> float:
        """Return the height of a value; what is outside is drawn at the edge."""
        low, high, at = (map(log10, (self.low, self.high, max(value, self.low))) if self.logarithmic
                         else (self.low, self.high, value))  # fmt: skip
        return round(BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, (at - low) / (high - low))), 1)

    def ticks(self) -> list[Label]:
        """Return the marks of the axis."""
        if self.logarithmic:
            values = [10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1)]
        else:
            values = [self.low + (self.high - self.low) * step / 5 for step in range(6)]
        return [Label(self.y(value), [f"{value:g}"]) for value in values]


SHARES: Final = Scale(0.0, 1.0)
"""The axis of scores."""


def powers_around(values: Sequence[float]) -> Scale:
    """Return a logarithmic axis that has room for all `values`, which are above 0.

    >>> powers_around([0.2, 30])
    Scale(low=0.1, high=100.0, logarithmic=True)
    """
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), logarithmic=True)


def lines(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> Plan:
    """Return a line for each colour in `series`, with a value for each label, None for a gap.

    Of more labels than there is room for, every second, third … is written.
    """
    room = (RIGHT - LEFT) / len(labels)
    step = ceil((max(map(len, labels)) + 1) * _CHARACTER / room)
    drawn = []
    for colour, values in series.items():
        marks = [
            Mark(
                x=round(LEFT + room * (place + 0.5), 1), y=scale.y(one.value), text=f"{labels[place]}: {one.value:.3f}"
            )
            for place, one in enumerate(values)
            if one is not None
        ]
        drawn.append(Drawn(colour=colour, marks=marks, line=" ".join(f"{mark.x},{mark.y}" for mark in marks)))
    return _plan(labels, drawn, scale, step)


def panels(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> list[Plan]:
    """Return bars in as many drawings as their labels need, which stand side by side where there is room."""
    size = ceil(len(labels) / ceil(len(labels) / MOST_GROUPS))
    return [
        bars(labels[at : at + size], {colour: values[at : at + size] for colour, values in series.items()}, scale)
        for at in range(0, len(labels), size)
    ]


def bars(labels: Sequence[str], series: Mapping[int, Sequence[Value | None]], scale: Scale) -> Plan:
    """Return a group of bars for each label, one for each colour in `series`, with the whiskers of intervals."""
    room = (RIGHT - LEFT) / len(labels)
    width = room * _BARS / max(1, len(series))
    drawn = []
    for number, (colour, values) in enumerate(series.items()):
        marks = []
        for place, one in enumerate(values):
            if one is None:
                continue
            x, y = LEFT + room * (place + (1 - _BARS) / 2) + width * number, scale.y(one.value)
            whisker = (
                f"M{x + width / 2:.1f} {scale.y(one.low)}V{scale.y(one.high)}"
                if one.low is not None and one.high is not None
                else ""
            )
            marks.append(Mark(x=round(x, 1), y=y, width=round(width * 0.92, 2), height=round(BOTTOM - y, 1),
                              text=f"{labels[place]}: {_in_words(one)}", whisker=whisker))  # fmt: skip
        drawn.append(Drawn(colour=colour, marks=marks))
    return _plan(labels, drawn, scale)


def _in_words(one: Value) -> str:
    return f"{one.value:.3g}" + (f" [{one.low:.2f}, {one.high:.2f}]" if one.low is not None else "")


def _plan(labels: Sequence[str], drawn: Sequence[Drawn], scale: Scale, step: int = 1) -> Plan:
    room = (RIGHT - LEFT) / len(labels)
    placed = [
        Label(
            round(LEFT + room * (place + 0.5), 1),
            wrap(text, max(1, int(room * step / _CHARACTER)), max_lines=_MOST_LINES, placeholder="…"),
        )
        for place, text in enumerate(labels)
        if place % step == 0
    ]
    height = BOTTOM + 8 + _LINE * max(len(label.lines) for label in placed)
    return Plan(labels=placed, ticks=scale.ticks(), series=drawn, height=height)
