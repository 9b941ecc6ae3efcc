"""Programs that make pictures, films, sounds and drawings, and read them."""

from __future__ import annotations

from pathlib import Path

from tests.programs import inputs, inputs_media
from tests.programs.harness import SCRIPTS, Case, Run, nothing


def ffmpeg(run: Run) -> None:
    base = ("ffmpeg", "-hide_banner", "-nostdin", "-nostats", "-loglevel", "error", "-y")
    exact = ("-fflags", "+bitexact", "-flags", "+bitexact", "-map_metadata", "-1", "-threads", "2")
    film = ("-f", "lavfi", "-i", "testsrc2=size=480x270:rate=25:duration=4")
    sound = ("-f", "lavfi", "-i", "aevalsrc=sin(440*2*PI*t)+0.3*sin(97*PI*t*t):s=44100:d=4")
    # With its default, x264 4:164 writes other bytes from run to run, whatever the allocator.
    steady = ("-x264-params", "mbtree=0")
    h264 = ("-c:v", "libx264", "-preset", "medium", "-pix_fmt", "yuv420p", "-c:a", "flac", *steady)
    run.step("h264", *base, *film, *sound, *h264, *exact, "-shortest", "a.mkv", watch=True)
    vp9 = ("-an", "-c:v", "libvpx-vp9", "-cpu-used", "6", "-row-mt", "1", "-b:v", "400k")
    run.step("vp9", *base, *film, *vp9, *exact, "-t", "3", "b.webm")
    run.step("mpeg4", *base, "-i", "a.mkv", "-c:v", "mpeg4", "-c:a", "mp3", *exact, "c.avi")
    graph = "[0:v]split[a][b];[a]hflip,boxblur=3[x];[b]scale=240:-1,hue=h=t*9[y];[x][y]overlay=9:9"
    sums = ("-f", "framemd5", "-")
    run.step("filter", *base, "-i", "a.mkv", "-filter_complex", graph, *exact, *sums)
    run.step("sound", *base, "-i", "c.avi", "-af", "atempo=1.3,aresample=22050", *exact, "d.wav")
    run.step("pictures", *base, "-i", "b.webm", "-vf", "fps=5", *exact, "p%02d.png")
    run.step("probe", "ffprobe", "-loglevel", "error", "-show_frames", "-of", "csv", "a.mkv")


def two_pictures(folder: Path) -> None:
    inputs_media.picture(folder / "one.ppm", 1024, 768, 1)
    inputs_media.picture(folder / "two.ppm", 800, 600, 2)


def imagemagick(run: Run) -> None:
    # PNG files get the time of their making unless it is left out.
    plain = ("-define", "png:exclude-chunks=time")
    magick(run, ("convert-im6.q16",), ("composite-im6.q16",), plain)


def graphicsmagick(run: Run) -> None:
    magick(run, ("gm", "convert"), ("gm", "composite"), ("+profile", "*"))


def magick(
    run: Run, convert: tuple[str, ...], composite: tuple[str, ...], plain: tuple[str, ...]
) -> None:
    one, two = (str(run.input / name) for name in ("one.ppm", "two.ppm"))
    for name, words in (
        ("resize", ("-resize", "1500x", "-unsharp", "0x2", "resized.ppm")),
        ("blur", ("-gaussian-blur", "0x5", "-rotate", "33", "blurred.tiff")),
        ("paint", ("-resize", "50%", "-paint", "3", "-colors", "60", "painted.gif")),
        ("swirl", ("-swirl", "90", "-implode", "0.3", "-edge", "2", "swirled.jpg")),
        ("despeckle", ("-despeckle", "-median", "2", "-modulate", "110,80", "clean.ppm")),
        ("compress", ("-quality", "95", *plain, "out.png")),
    ):
        run.step(name, *convert, one, *words, watch=name == "resize")
    run.step("over", *composite, "-compose", "Multiply", two, "resized.ppm", "over.ppm")
    run.step("many", *convert, one, two, "-resize", "400x300!", "-append", "-negate", "all.ppm")


def vips(run: Run) -> None:
    one, two = (str(run.input / name) for name in ("one.ppm", "two.ppm"))
    for words in (
        ("resize", one, "a.v", "2.5"),
        ("sharpen", "a.v", "b.v"),
        ("gaussblur", "b.v", "c.v", "6"),
        ("rotate", "c.v", "d.v", "21"),
        ("colourspace", "d.v", "e.v", "lab"),
        ("hist_equal", "a.v", "f.v"),
        ("rank", two, "g.v", "5", "5", "12"),
        ("embed", two, "h.v", "50", "50", "1200", "900", "--extend", "mirror"),
        ("canny", one, "i.v"),
        ("thumbnail", one, "j.png[strip]", "300"),
        ("dzsave", "a.v", "tiles", "--suffix", ".png[strip]"),
    ):
        run.step(words[0], "vips", "--vips-concurrency=2", *words, watch=words[0] == "gaussblur")


def rsvg(run: Run) -> None:
    source = str(run.input / "drawing.svg")
    for zoom in ("1", "2.5"):
        run.step(f"png-{zoom}", "rsvg-convert", "-z", zoom, source, "-o", f"{zoom}.png", watch=True)
    run.step("svg", "rsvg-convert", "-f", "svg", source, "-o", "again.svg")


def inkscape(run: Run) -> None:
    source = str(run.input / "drawing.svg")
    # It warns on stderr about what a machine without a screen lacks.
    export = 'inkscape "$0" --export-filename="$1" 2> log'
    for name in ("a.png", "plain.svg"):
        run.step(name, "sh", "-c", export, source, name)


def graphviz(run: Run) -> None:
    directed, plain = (str(run.input / name) for name in ("directed.gv", "plain.gv"))
    run.step("dot", "dot", "-Tsvg", directed, "-o", "dot.svg", watch=True)
    run.step("order", "dot", "-Tplain", "-Gsplines=ortho", directed)
    for engine in ("neato", "twopi", "circo"):
        run.step(engine, engine, "-Tplain", plain)
    run.step("picture", "neato", "-Gstart=7", "-Tpng", plain, "-o", "neato.png")
    run.step("reduce", "tred", directed)
    program = "BEGIN { int n } E { n += length($.label) } END { print(n) }"
    run.step("parts", "gvpr", program, directed)


GNUPLOT = """set terminal pngcairo size 900,700 noenhanced
set output "surface.png"
set isosamples 90
set hidden3d
splot sin(sqrt(x * x + y * y)) / sqrt(x * x + y * y + 0.1) with lines
set output "data.png"
plot DATA using 1:7 every 3 with points, DATA using 1:7 smooth bezier, DATA u 1:7 smooth unique
f(x) = a * x + b + c * sin(x / d)
a = 0.001; b = 1; c = 0.1; d = 900
set fit quiet logfile "/dev/null"
fit f(x) DATA using 1:7 via a, b, c
print sprintf("%.4g %.4g %.4g", a, b, c)
stats DATA using 1:7
set terminal svg size 700,700
set output "many.svg"
set multiplot layout 4,4
do for [n = 1:16] { plot DATA using (column(1) * n):7 every 40 * n with impulses notitle }
unset multiplot
set terminal dumb 150 50
set output "text.txt"
plot for [n = 1:9] sin(x * n) / n
array rows[20000]
do for [n = 1:20000] { rows[n] = sprintf("%d-%s", n, strftime("%Y", n * 1000000)) }
print rows[77] . rows[19999]
"""


def gnuplot_input(folder: Path) -> None:
    (folder / "plots").write_text(GNUPLOT)
    rows = (f"{n} a b c d e {(n * 7919 % 1000) / 999 + n / 9000:.4f}\n" for n in range(9000))
    (folder / "data").write_text("".join(rows))


def gnuplot(run: Run) -> None:
    data = f'DATA = "{run.input}/data"'
    run.step("plots", "gnuplot", "-e", data, str(run.input / "plots"), watch=True)


def sox(run: Run) -> None:
    base = ("sox", "-R", "-D", "--multi-threaded", "-V1")
    notes = ("synth", "4", "pluck", "C3", "pluck", "E3", "sine", "200-900", "noise", "gain", "-9")
    run.step("make", *base, "-n", "-r", "44100", "-b", "16", "a.wav", *notes, "remix", "1,2", "3,4")
    for name, effects in (
        ("rate", "rate -v 96000"), ("hall", "reverb 60 pad 0 2"), ("faster", "tempo 1.7"),
        ("pitch", "pitch 300"), ("clean", "compand 0.3,1 6:-70,-60,-20 -5 -90 0.2"),
        ("shift", "chorus 0.7 0.9 55 0.4 0.25 2 -t bend .5,300,2"),
    ):  # fmt: skip
        run.step(name, *base, "a.wav", f"{name}.flac", *effects.split(), watch=name == "hall")
    run.step("picture", *base, "a.wav", "-n", "spectrogram", "-r", "-x", "800", "-o", "a.png")


def espeak(run: Run) -> None:
    text = str(run.input / "text")
    for voice in ("en", "de", "fr", "ru"):
        run.step(voice, "espeak-ng", "-v", voice, "-f", text, "-w", f"{voice}.wav", watch=True)
        run.step(f"{voice}-sounds", "espeak-ng", "-q", "--ipa", "-v", voice, "-f", text)


def espeak_input(folder: Path) -> None:
    lines = (f"{n} {word} and {word}s, {n * 37}.\n" for n, word in enumerate(inputs.WORDS * 5))
    (folder / "text").write_text("".join(lines))


def graphs(folder: Path) -> None:
    inputs_media.graph(folder / "directed.gv", 260, 380, "digraph")
    inputs_media.graph(folder / "plain.gv", 160, 240, "graph")


def povray(run: Run) -> None:
    # It may read and write only where it runs. What it says holds times, and so do its pictures.
    (run.work / "work.pov").write_bytes((SCRIPTS / "work.pov").read_bytes())
    render = 'povray work.pov "$@" +WT2 -D +FP -J > log 2>&1 && sed -i "/^# Render Date/d" *.ppm'
    for name, words in (
        ("picture", ("+W240", "+H180", "+A0.3", "+Opicture.ppm")),
        ("film", ("+W80", "+H60", "-A", "+KFF4", "+KF2.5", "+Ofilm.ppm")),
    ):
        run.step(name, "sh", "-c", render, "sh", *words)


THREADS = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "MAGICK_THREAD_LIMIT": "2"}

GROUP = "pictures and sound"

CASES = (
    Case(
        "ffmpeg", ("ffmpeg", "ffprobe"), nothing, ffmpeg,
        proof=("ffmpeg", "-f", "lavfi", "-i", "testsrc=d=1", "-f", "null", "-"), group=GROUP,
        what="H.264, VP9, MPEG-4, FLAC and MP3 in threads, filters",
    ),
    Case(
        "imagemagick", ("convert-im6.q16", "composite-im6.q16"), two_pictures, imagemagick,
        proof=("convert-im6.q16", "@INPUT@/two.ppm", "-scale", "50%", "a.gif"),
        proof_of=("libMagickCore-6.Q16.so.6",), env=THREADS, group=GROUP,
        what="resize, blur, rotate, quantise, swirl, compose",
    ),
    Case(
        "graphicsmagick", ("gm",), two_pictures, graphicsmagick,
        proof=("gm", "convert", "@INPUT@/two.ppm", "-scale", "50%", "a.gif"),
        proof_of=("libGraphicsMagick-Q16.so.3",), env=THREADS, group=GROUP,
        what="resize, blur, rotate, quantise, swirl, compose",
    ),
    Case(
        "vips", ("vips",), two_pictures, vips,
        proof=("vips", "invert", "@INPUT@/two.ppm", "a.v"), proof_of=("libglib-2.0.so.0",),
        may_differ=("tiles_files/vips-properties.xml",),  # the time
        packages=("libvips-tools",), group=GROUP,
        what="pictures of 5 megapixels by two threads, edges, tiles",
    ),
    Case(
        "rsvg", ("rsvg-convert",), lambda folder: inputs_media.drawing(folder / "drawing.svg", 500),
        rsvg, proof=("rsvg-convert", "@INPUT@/drawing.svg", "-o", "a.png"),
        packages=("librsvg2-bin", "fonts-dejavu-core"), group=GROUP,
        what="a drawing of 500 shapes, gradients, texts and blurs",
    ),
    Case(
        "inkscape", ("inkscape",), lambda folder: inputs_media.drawing(folder / "drawing.svg", 300),
        inkscape, proof=("inkscape", "--version"), proof_of=("libglib-2.0.so.0",),
        may_differ=("log", ".*"), packages=("inkscape", "fonts-dejavu-core"), group=GROUP,
        what="a drawing of 300 shapes to PNG and plain SVG",
    ),
    Case(
        "graphviz", ("dot", "neato", "gvpr"), graphs, graphviz,
        proof=("dot", "-Tplain", "@INPUT@/directed.gv"), proof_of=("libcgraph.so.6",),
        may_differ=(".cache/*",), packages=("graphviz", "fonts-dejavu-core"), group=GROUP,
        what="layouts of 260 nodes by four engines",
        by_address="it sorts subgraphs by the addresses of their names (idmap, lib/cgraph/id.c)",
    ),
    Case(
        "gnuplot", ("gnuplot",), gnuplot_input, gnuplot, proof=("gnuplot", "-e", "print 1"),
        may_differ=(".cache/*",), packages=("gnuplot-nox", "fonts-dejavu-core"), group=GROUP,
        what="surfaces, fits, sixteen plots on a page",
    ),
    Case(
        "povray", ("povray",), nothing, povray, proof=("povray", "--version"),
        may_differ=("log", ".*"), group=GROUP,
        misuse="hakmem ends it, since it deletes a UnixShelloutProcessing of 1,112 bytes as a "
        "ShelloutProcessing of 1,016, whose destructor is not virtual in POV-Ray 3.7; "
        "measured with check_sizes=off, with which the results are the same",
        without=("check_sizes=off",),
        what="a scene of 900 spheres, a mesh, a blob, functions, solids; four frames; two threads",
    ),
    Case(
        "sox", ("sox",), nothing, sox, proof=("sox", "-n", "a.wav", "synth", "1", "sine", "200"),
        env={"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}, group=GROUP,
        what="synthesis, reverberation, tempo, pitch, spectrogram, by threads",
    ),
    Case(
        "espeak", ("espeak-ng",), espeak_input, espeak,
        proof=("espeak-ng", "-q", "--ipa", "one"), proof_of=("libespeak-ng.so.1",),
        packages=("espeak-ng",), group=GROUP, what="150 sentences spoken in four languages",
    ),
)  # fmt: skip
