"""The list of all measurements on the page of results: each with its commands, dates and figures.

It is read from the results of the studies when the site is built: ``benchmarks/*/RESULTS.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COMMAND = re.compile(r"^    (?:\S+=\S+ |env |taskset -c \d+ )*python -m (?:.*\\\n)*.*$", re.MULTILINE)


class Measurement(NamedTuple):
    """A section of results, with those that follow it without commands of their own."""

    title: str
    commands: list[str]
    dates: list[str]
    figures: list[str]


def measurements(results: str) -> Iterator[Measurement]:
    """Yield the measurements; a section without a date has the first section's."""
    parts = re.split(r"^#+ (.+)$", results, flags=re.MULTILINE)[1:]
    sections: list[list[str]] = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if not sections or _COMMAND.search(text):
            sections.append([title, text])
        else:
            sections[-1][1] += text
    for title, text in sections:
        dates = re.findall(r"20\d\d-\d\d-\d\d", text) or re.findall(r"20\d\d-\d\d-\d\d", sections[0][1])
        if commands := _COMMAND.findall(text):
            yield Measurement(title, commands, sorted(set(dates)), sorted(set(re.findall(r"docs/(\w+\.png)", text))))


def listing(studies: dict[Path, Path]) -> str:
    """Return the list for the page of all results, which are given by their results."""
    text = "\n## Every measurement\n\nCollected from the results when this site was built, with the dates there.\n"
    for results, page in studies.items():
        content = results.read_text(encoding="utf-8")
        text += f"\n### {re.match('# (.+)', content)[1]}\n"  # type: ignore[index]
        for title, commands, dates, figures in measurements(content):
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            drawn = f"; drawn: {', '.join(figures)}" if figures else ""
            text += f"\n[{title}]({page.name}#{anchor}), {', '.join(dates)}{drawn}\n\n" + "\n".join(commands) + "\n"
    return text
