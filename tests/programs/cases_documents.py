"""Programs that make and read documents and pages: office, PDF, text recognition, browsers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.programs import inputs_media
from tests.programs.harness import Case, Run


def ghostscript(run: Run) -> None:
    source = str(run.input / "pages.ps")
    base = ("gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER")
    # A PDF holds the time of its making and a random identifier; its pages are compared.
    run.step("pdf", *base, "-sDEVICE=pdfwrite", "-o", "pages.pdf", source, watch=True)
    threads = ("-dNumRenderingThreads=2", "-dBandHeight=100", "-dMaxBitmap=1000000")
    run.step("png", *base, *threads, "-sDEVICE=png16m", "-r90", "-o", "p%02d.png", "pages.pdf")
    run.step("gray", *base, "-sDEVICE=pbmraw", "-r200", "-o", "g%02d.pbm", source)
    run.step("text", *base, "-sDEVICE=txtwrite", "-o", "-", "pages.pdf")
    run.step("ink", *base, "-sDEVICE=inkcov", "-o", "-", "pages.pdf")


def poppler(run: Run) -> None:
    source = str(run.input / "pages.pdf")
    run.step("layout", "pdftotext", "-layout", source, "-")
    run.step("boxes", "pdftotext", "-bbox-layout", source, "-")
    run.step("pictures", "pdftoppm", "-r", "80", "-png", source, "page", watch=True)
    run.step("cairo", "pdftocairo", "-r", "60", "-png", source, "cairo")
    run.step("images", "pdfimages", "-all", source, "image")
    run.step("fonts", "pdffonts", source)
    run.step("separate", "pdfseparate", "-l", "8", source, "p%d.pdf")
    run.step("unite", "pdfunite", "p3.pdf", "p1.pdf", "p2.pdf", "united.pdf")
    run.step("united", "pdftotext", "united.pdf", "-")
    run.step("html", "pdftohtml", "-q", "-s", "-i", "-noframes", source, "pages.html")


def pages_of_pdf(folder: Path) -> None:
    inputs_media.postscript(folder / "pages.ps", 12)
    subprocess.run(["ps2pdf", "pages.ps", "pages.pdf"], cwd=folder, check=True)


def libreoffice(run: Run) -> None:
    office = (
        "soffice", "--headless", "--norestore", "--nolockcheck", "--nologo",
        f"-env:UserInstallation=file://{run.work}/profile", "--convert-to",
    )  # fmt: skip
    for source, kind in (
        ("text.fodt", "pdf"), ("text.fodt", "docx:MS Word 2007 XML"), ("word.docx", "odt"),
        ("word.docx", "txt:Text"), ("table.csv", "xlsx"), ("table.csv", "pdf"),
    ):  # fmt: skip
        short = kind.partition(":")[0]
        # Java, printers and the like are missed on stderr, on some machines.
        convert = (*office, kind, str(run.input / source))
        run.step(f"{source}-{short}", "sh", "-c", '"$@" 2> log', "sh", *convert)
    run.step("text", "pdftotext", "-layout", "text.pdf", "-")
    run.step("table", "pdftotext", "-layout", "table.pdf", "-")
    run.step("word", "unzip", "-p", "text.docx", "word/document.xml")
    run.step("sheet", "unzip", "-p", "table.xlsx", "xl/worksheets/sheet1.xml")


def pandoc(run: Run) -> None:
    source = str(run.input / "text.md")
    for kind in ("html5", "latex", "docbook5", "native", "rst", "man", "json"):
        run.step(kind, "pandoc", "-s", "--toc", "-M", "title=x", "-t", kind, source,
                 watch=kind == "latex")  # fmt: skip
    run.step("docx", "pandoc", "-t", "docx", source, "-o", "a.docx")
    run.step("back", "pandoc", "a.docx", "-t", "commonmark")


def tesseract(run: Run) -> None:
    for page in sorted(run.input.glob("*.png")):
        run.step(page.stem, "tesseract", str(page), page.stem, "--dpi", "150")


def printed(folder: Path) -> None:
    """Three pages of the text alone, as pictures."""
    inputs_media.postscript(folder / "pages.ps", 3)
    source = (folder / "pages.ps").read_text().splitlines()
    text = [line for line in source if line.endswith(("show", "showpage", "setfont"))]
    (folder / "pages.ps").write_text("\n".join(["%!PS", *text]) + "\n")
    device = ("-sDEVICE=pnggray", "-r150", "-o", "p%d.png")
    subprocess.run(["gs", "-q", *device, "pages.ps"], cwd=folder, check=True)


def chromium(run: Run) -> None:
    flags = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={run.work}/profile", "--virtual-time-budget=20000",
        # Else a picture may be taken before its lowest part is drawn.
        "--run-all-compositor-stages-before-draw",
    )  # fmt: skip
    page = f"file://{run.input}/page.html"
    # What it says on stderr is about the machine: no bus, no screen.
    run.step("dom", "sh", "-c", '"$@" 2> log', "sh", "chromium", *flags, "--dump-dom", page)
    shot = ("--window-size=800,600", "--screenshot=page.png", page)
    run.step("picture", "sh", "-c", '"$@" > log 2>&1', "sh", "chromium", *flags, *shot)


def firefox(run: Run) -> None:
    (run.work / "profile").mkdir()
    words = ("firefox-esr", "--headless", "--profile", "profile", "--no-remote")
    shot = ("--window-size=800,600", "--screenshot", str(run.work / "page.png"))
    page = f"file://{run.input}/page.html"
    run.step("picture", "sh", "-c", '"$@" > log 2>&1', "sh", *words, *shot, page)


def page(folder: Path) -> None:
    inputs_media.page(folder / "page.html")


GROUP = "text and documents"

CASES = (
    Case(
        "ghostscript", ("gs",), lambda folder: inputs_media.postscript(folder / "pages.ps", 8),
        ghostscript, proof=("gs", "-q", "-dBATCH", "-c", "quit"), proof_of=("libgs.so.10",),
        may_differ=("pages.pdf",), group=GROUP,
        what="8 pages of PostScript to PDF, PNG, bitmaps and text",
        note="the PDF holds the time: its pages are compared",
    ),
    Case(
        "poppler", ("pdftotext", "pdftoppm", "ps2pdf"), pages_of_pdf, poppler,
        proof=("pdftotext", "@INPUT@/pages.pdf", "-"), proof_of=("pdftotext",),
        may_differ=("united.pdf", "p?.pdf"),  # random identifiers; the text of one is compared
        packages=("poppler-utils", "ghostscript"), group=GROUP,
        what="12 pages of PDF to text, pictures and HTML",
    ),
    Case(
        "libreoffice", ("soffice", "pdftotext", "unzip"),
        lambda folder: inputs_media.documents(folder, 900, 3000), libreoffice,
        proof=("soffice", "--headless", "--version"), proof_of=("libuno_sal.so.3",),
        may_differ=("profile/*", ".*", "log", "*.pdf", "*.docx", "*.odt", "*.xlsx"), packages=(
        "libreoffice-writer-nogui", "libreoffice-calc-nogui", "poppler-utils", "unzip",
        "fonts-dejavu-core", ), group=GROUP,
        what="ODF, DOCX and CSV with sums to PDF, DOCX, ODF and XLSX",
        note="documents hold times: texts and parts are compared",
    ),
    Case(
        "pandoc", ("pandoc",), lambda folder: inputs_media.documents(folder, 300, 20), pandoc,
        proof=("pandoc", "--version"), env={"SOURCE_DATE_EPOCH": "1700000000"}, group=GROUP,
        what="Markdown to seven formats and DOCX, and back",
    ),
    Case(
        "tesseract", ("tesseract", "gs"), printed, tesseract,
        proof=("tesseract", "--list-langs"), proof_of=("tesseract",),
        # Threads that wait by spinning would count as work on a busy machine.
        env={"OMP_THREAD_LIMIT": "2", "OMP_WAIT_POLICY": "passive"},
        packages=("tesseract-ocr", "tesseract-ocr-eng", "ghostscript"), group=GROUP,
        what="three printed pages recognised",
    ),
    Case(
        "chromium", ("chromium",), page, chromium, proof=("chromium", "--version"),
        may_differ=("profile/*", ".*", "log"), packages=("chromium", "fonts-dejavu-core"),
        group=GROUP, what="a page built by its script: DOM and picture", note="its profile",
        own="PartitionAlloc",
    ),
    Case(
        "firefox", ("firefox-esr",), page, firefox, proof=("firefox-esr", "--version"),
        may_differ=("profile/*", ".*", "log"), packages=("firefox-esr", "fonts-dejavu-core"),
        group=GROUP, what="a page built by its script: picture", note="its profile",
        own="mozjemalloc",
    ),
)  # fmt: skip
