"""Draw the logo, the favicon and the board of the landing page as SVG files: python docs/drawings.py."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "_static"
BLUE, LIGHT, ORANGE, PALE = "#00568c", "#7fc4ee", "#d55e00", "#f2a25c"
PINS = range(40, 161, 24)


def svg(width: int, height: int, shapes: str) -> str:
    """Return a drawing."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{shapes}</svg>\n'


def gap(objective: str, bound: str) -> str:
    """Return the mark: an objective that falls, a bound that rises, and the optimum where they meet."""
    curve = 'fill="none" stroke-width="7" stroke-linecap="round"'
    return (
        f'<path d="M8 8 C14 28 28 34 52 34" stroke="{objective}" {curve}/>'
        f'<path d="M8 56 C16 42 28 34 52 34" stroke="{bound}" {curve}/>'
        f'<circle cx="54" cy="34" r="8" fill="{objective}"/>'
    )


def inset(shapes: str) -> str:
    """Return shapes with a margin."""
    return f'<g transform="translate(7 7) scale(0.78)">{shapes}</g>'


def board() -> str:
    """Return a microcontroller on its board, with the size of a model of digits in it."""
    legs = "".join(
        f'<rect x="{a}" y="{b}" width="{w}" height="{h}" fill="#c8ccd0"/>'
        for at in PINS
        for a, b, w, h in ((60 + at, 38, 8, 16), (60 + at, 146, 8, 16))
    )
    holes = "".join(
        f'<circle cx="{x}" cy="{y}" r="4.5" fill="#e9c46a"/>'
        for x in range(30, 300, 20)
        for y in (14, 186)
    )
    text = 'fill="#fff" text-anchor="middle" font-family="system-ui, sans-serif"'
    return (
        '<rect width="320" height="200" rx="12" fill="#0f6b4f"/>'
        + holes
        + legs
        + '<rect x="84" y="52" width="152" height="96" rx="5" fill="#1d242b"/>'
        + '<circle cx="97" cy="65" r="4" fill="#57616b"/>'
        + f'<text x="160" y="108" font-size="38" font-weight="700" {text}>2.2 kB</text>'
        + f'<text x="160" y="132" font-size="15" {text}>98 % of digits</text>'
        + '<rect x="20" y="80" width="34" height="40" rx="3" fill="#b7bdc3"/>'
        + '<circle cx="272" cy="84" r="7" fill="#f4d35e"/><circle cx="272" cy="112" r="7" fill="#7fc4ee"/>'
    )


def main() -> None:
    """Write all drawings."""
    for name, drawing in {
        "logo": svg(64, 64, gap(BLUE, ORANGE)),
        "logo_dark": svg(64, 64, gap(LIGHT, PALE)),
        "favicon": svg(
            64,
            64,
            f'<rect width="64" height="64" rx="14" fill="{BLUE}"/>'
            + inset(gap("#fff", PALE)),
        ),
        "board": svg(320, 200, board()),
    }.items():
        (STATIC / f"{name}.svg").write_text(drawing, "utf-8")


if __name__ == "__main__":
    main()
