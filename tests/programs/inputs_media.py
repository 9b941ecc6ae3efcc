"""Inputs of the cases about pictures, sound, documents and drawings, all made from seeds."""

from __future__ import annotations

import io
import math
import random
import zipfile
from pathlib import Path

from tests.programs import inputs
from tests.programs.inputs import WORDS


def picture(file: Path, width: int, height: int, seed: int) -> None:
    """A PPM: waves of three colours, and rectangles of noise."""
    rng = random.Random(seed)
    rows = []
    for y in range(height):
        one, two = (bytes(int(127 + 120 * math.sin((x + y * k) / 90)) for x in range(256))
                    for k in (0.3, 1.7))  # fmt: skip
        row = bytearray(3 * width)
        for channel, wave in enumerate((one, two, one[::-1])):
            row[channel::3] = (wave * (width // 256 + 1))[:width]
        rows.append(row)
    for _ in range(120):
        x, y = rng.randrange(width - 60), rng.randrange(height - 40)
        for line in range(y, y + rng.randint(4, 40)):
            rows[line][3 * x : 3 * x + 150] = rng.randbytes(150)
    file.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + b"".join(rows))


def drawing(file: Path, shapes: int) -> None:
    """An SVG of paths, gradients, text, clips, blurs and uses of one another."""
    rng = random.Random(71)
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'width="900" height="900"><defs>'
        '<filter id="f"><feGaussianBlur stdDeviation="3"/></filter>'
    ]
    for n in range(20):
        colour = f"#{rng.randrange(1 << 24):06x}"
        out.append(f'<linearGradient id="g{n}"><stop offset="0" stop-color="{colour}"/>'
                   f'<stop offset="1" stop-color="#fff" stop-opacity="0.3"/></linearGradient>'
                   f'<g id="s{n}"><circle r="{n + 3}" fill="url(#g{n})"/></g>')  # fmt: skip
    out.append("</defs>")
    for n in range(shapes):
        points = " ".join(f"{rng.randrange(900)},{rng.randrange(900)}" for _ in range(8))
        x, y = rng.randrange(900), rng.randrange(900)
        out.append(
            (
                f'<path d="M{x} {y} C {points} Z" fill="url(#g{n % 20})" fill-opacity="0.4" '
                f'stroke="black" stroke-dasharray="4 {n % 7}"/>',
                f'<use xlink:href="#s{n % 20}" transform="translate({x},{y}) rotate({n})"/>',
                f'<text x="{x}" y="{y}" font-family="DejaVu Sans">{inputs.sentence(rng, 4)}</text>',
                f'<rect x="{x}" y="{y}" width="50" height="9" '
                + ('filter="url(#f)" ' if n % 40 == 3 else "")
                + f'fill="#{rng.randrange(1 << 24):06x}"/>',
            )[n % 4]
        )
    file.write_text("\n".join([*out, "</svg>"]) + "\n")


def graph(file: Path, nodes: int, edges: int, kind: str) -> None:
    rng = random.Random(72)
    arrow = "->" if kind == "digraph" else "--"
    out = [f"{kind} g {{", "  node [shape=box];"]
    for n in range(nodes):
        out.append(f'  n{n} [label="{inputs.sentence(rng, 3)}\\n{n}"];')
    for _ in range(edges):
        a = rng.randrange(nodes - 1)
        b = min(nodes - 1, a + 1 + int(rng.expovariate(0.2)))
        out.append(f'  n{a} {arrow} n{b} [label="{rng.choice(WORDS)}" weight={rng.randint(1, 5)}];')
    for part in range(0, nodes, 40):
        members = " ".join(f"n{n};" for n in range(part, min(part + 8, nodes)))
        out.append(f"  subgraph cluster_{part} {{ {members} }}")
    file.write_text("\n".join([*out, "}"]) + "\n")


def documents(folder: Path, paragraphs: int, rows: int) -> None:
    """The same text as an OpenDocument (flat), as a DOCX and in Markdown; a table with sums."""
    rng = random.Random(73)
    text = [" ".join(inputs.sentence(rng) for _ in range(rng.randint(2, 9)))
            for _ in range(paragraphs)]  # fmt: skip
    flat = "".join(
        f'<text:h text:outline-level="{1 + n % 3}">{p[:30]}</text:h>' if n % 9 == 0
        else f"<text:p>{p} <text:span>{p[:15]}</text:span></text:p>"
        for n, p in enumerate(text)
    )  # fmt: skip
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{rng.choice(WORDS)} {n}</text:p></table:table-cell>"
                  for _ in range(4))
        + "</table:table-row>"
        for n in range(rows // 20)
    )  # fmt: skip
    spaces = " ".join(
        f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"'
        for n in ("office", "text", "table")
    )
    (folder / "text.fodt").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {spaces} office:version="1.2" '
        'office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>'
        f'{flat}<table:table><table:table-column table:number-columns-repeated="4"/>{cells}'
        "</table:table></office:text></office:body></office:document>\n"
    )
    docx(folder / "word.docx", text)
    markdown(folder / "text.md", text, rng)
    with (folder / "table.csv").open("w") as out:
        for n in range(1, rows + 1):
            sums = f'=SUM(B{max(1, n - 9)}:B{n})*2","=IF(MOD(A{n};7)=0;UPPER(C{n});LEN(C{n}))'
            out.write(f'{n},{rng.randrange(9999)},{rng.choice(WORDS)},"{sums}"\n')


def docx(file: Path, text: list[str]) -> None:
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    base = "http://schemas.openxmlformats.org"
    body = "".join(
        f"<w:p><w:r>{'<w:rPr><w:b/></w:rPr>' if n % 5 == 0 else ''}<w:t>{p}</w:t></w:r></w:p>"
        for n, p in enumerate(text)
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, part in (
            (
                "[Content_Types].xml",
                f'<Types xmlns="{base}/package/2006/content-types"><Default Extension="rels" '
                'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
                f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
            ),
            (
                "_rels/.rels",
                f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="r1" '
                f'Type="{base}/officeDocument/2006/relationships/officeDocument" '
                'Target="word/document.xml"/></Relationships>',
            ),
            (
                "word/document.xml",
                f'<w:document xmlns:w="{base}/wordprocessingml/2006/main"><w:body>{body}</w:body>'
                "</w:document>",
            ),
        ):
            out.writestr(zipfile.ZipInfo(name), f'<?xml version="1.0" encoding="UTF-8"?>{part}')


def markdown(file: Path, text: list[str], rng: random.Random) -> None:
    out = io.StringIO()
    for n, paragraph in enumerate(text):
        if n % 12 == 0:
            out.write(f"{'#' * (1 + n % 3)} {paragraph[:40]}\n\n")
        words = paragraph.split()
        words[0] = f"**{words[0]}**"
        words[-1] = f"[{words[-1]}](https://example.org/{n}) and $x^{n % 9}$[^{n}]"
        out.write(" ".join(words) + f"\n\n[^{n}]: {inputs.sentence(rng)}\n\n")
        if n % 10 == 0:
            out.write("".join(f"{k}. {inputs.sentence(rng)}\n    - `{k}`\n" for k in range(1, 6)))
            out.write("\n```c\nint main(void) { return 0; }\n```\n\n")
            out.write("| a | b |\n|---|---|\n" + f"| {words[1]} | {n} |\n" * 8 + "\n")
    file.write_text(out.getvalue())


PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>page</title>
<style>li { float: left; margin: 2px } li:nth-child(3n) { font-weight: bold }</style>
<ol id="list"></ol><p id="sum"></p>
<script>
const words = %s;
const counts = new Map();
const list = document.getElementById("list");
for (let n = 0; n < 4000; n++) {
    const item = document.createElement("li");
    const word = words[(n * 7919) %% words.length] + n %% 50;
    item.textContent = word;
    counts.set(word, (counts.get(word) || 0) + 1);
    list.appendChild(item);
    if (n %% 3 === 0) list.insertBefore(item, list.firstChild);
    if (n %% 5 === 0) list.removeChild(list.children[n %% list.children.length]);
}
let text = [];
for (let n = 0; n < 200000; n++) text.push(JSON.stringify({ n, word: words[n %% words.length] }));
const sum = text.join("").length + [...counts.keys()].sort().join(" ").length;
document.getElementById("sum").textContent = sum + " " + list.offsetWidth;
</script>
"""


def page(file: Path) -> None:
    """A page whose script builds most of it."""
    file.write_text(PAGE % list(WORDS))


def postscript(file: Path, pages: int) -> None:
    """Pages of text in several fonts, with curves, a picture and a shade on each."""
    rng = random.Random(72)
    fonts = ("Times-Roman", "Helvetica-Bold", "Courier", "Palatino-Italic")
    out = ["%!PS-Adobe-3.0"]
    for page in range(pages):
        for line in range(45):
            out.append(f"/{rng.choice(fonts)} findfont {rng.randint(8, 13)} scalefont setfont")
            out.append(f"50 {770 - line * 15} moveto ({line} {inputs.sentence(rng, 8)}) show")
        for _ in range(50):
            start, *curve = (rng.randrange(600) for _ in range(7))
            out.append(f"{rng.random():.2f} 0.4 {rng.random():.2f} setrgbcolor newpath")
            out.append(f"{start} 300 moveto {' '.join(map(str, curve))} curveto stroke")
        out.append(f"gsave 320 {rng.randrange(500)} translate 120 120 scale 64 64 8 "
                   "[64 0 0 -64 0 64] {currentfile 192 string readhexstring pop} "
                   f"false 3 colorimage\n{rng.randbytes(3 * 64 * 64).hex()}\ngrestore")  # fmt: skip
        out.append(
            "<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 600 0] /Function "
            "<< /FunctionType 2 /Domain [0 1] /C0 [0 1 0] /C1 [1 0 1] /N 1 >> >>"
        )
        out.append(f"gsave newpath 300 {page * 11 % 700} 60 0 360 arc clip shfill grestore")
        out.append("0 setgray showpage")
    file.write_text("\n".join(out) + "\n")
