"""Draws a terminal's text, with its colours, as SVG, such as the report of a run:

    script -qc "brunt -r 2000 -d 10s http://127.0.0.1:8080/ 2>/dev/null" /dev/null | python3 docs/picture.py > report.svg

docs/live.svg is the last picture of the live view of such a run, on a terminal of 100 by 26.
"""

import html
import re
import sys
import unicodedata

ADVANCE, LINE, MARGIN, FONT = 8.4, 18, 16, 14
PLAIN, STRONG, FAINT, GROUND = "#adbac7", "#e6edf3", "#768390", "#1c2128"
COLOURS = {"31": "#f47067", "32": "#57ab5a", "33": "#c69026", "34": "#539bf5", "36": "#39c5cf"}


def spans(line):
    """Pieces of a line with the codes that hold for each."""
    codes = []
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b"):
            given = [code for code in piece[2:-1].split(";") if code]
            codes = [] if given in ([], ["0"]) else codes + given
        elif piece:
            yield piece, codes


def width(text):
    """Columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    widest = max(width(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    across, down = round(widest * ADVANCE + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" viewBox="0 0 {across} {down}" '
          'role="img" aria-label="A report of brunt on a terminal">')
    print(f'<rect width="{across}" height="{down}" rx="8" fill="{GROUND}"/>')
    print('<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" '
          f'font-size="{FONT}" fill="{PLAIN}">')
    for number, line in enumerate(lines):
        at, parts = MARGIN, []
        for text, codes in spans(line):
            fill = next((COLOURS[code] for code in codes if code in COLOURS), None)
            fill = fill or (STRONG if "1" in codes else FAINT if "2" in codes or "90" in codes else PLAIN)
            weight = ' font-weight="bold"' if "1" in codes else ""
            length = width(text) * ADVANCE
            # Not every browser keeps spaces that stand side by side.
            shown = html.escape(text).replace(" ", "\u00a0")
            parts.append(f'<tspan x="{at:.1f}" textLength="{length:.1f}" fill="{fill}"{weight}>{shown}</tspan>')
            at += length
        print(f'<text y="{MARGIN + 13 + number * LINE}">{"".join(parts)}</text>')
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
