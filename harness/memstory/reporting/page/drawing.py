"""Where the marks of a plot lie: pure arithmetic; the template `plot.svg` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

WIDTH: Final = 900
LEFT, RIGHT, TOP, BOTTOM = 52, 850, 12, 290
_HEIGHT, _TURNED_HEIGHT = 320, 400
_ONE_LINE: Final = 90
"""Characters that fit below a plot; longer labels are turned."""

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
    """A text at a place of an axis."""

    at: float
    text: str


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
    turned: bool
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
        return [Label(self.y(value), f"{value:g}") for value in values]


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
    """Return a line for each colour in `series`, with a value for each label, None for a gap."""
    room = (RIGHT - LEFT) / len(labels)
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
    return _plan(labels, drawn, scale)


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


def _plan(labels: Sequence[str], drawn: Sequence[Drawn], scale: Scale) -> Plan:
    room = (RIGHT - LEFT) / len(labels)
    turned = max(map(len, labels)) * len(labels) > _ONE_LINE
    placed = [Label(round(LEFT + room * (place + 0.5), 1), text) for place, text in enumerate(labels)]
    height = _TURNED_HEIGHT if turned else _HEIGHT
    return Plan(labels=placed, ticks=scale.ticks(), series=drawn, turned=turned, height=height)
