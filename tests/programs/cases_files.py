"""Programs that pack, copy, search and change files: archivers, text tools, editors, ciphers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.programs import inputs, inputs_files
from tests.programs.harness import SCRIPTS, Case, Failure, Run

NVIM_SCRIPT = str(SCRIPTS / "work_nvim.lua")
START_SECONDS = 120


def tar(run: Run) -> None:
    tree = ("-C", str(run.input), "tree")
    fixed = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=posix")
    times = "--pax-option=exthdr.name=%d/%f,delete=atime,delete=ctime"
    run.step("create", "tar", *fixed, times, "-cf", "all.tar", *tree, watch=True)
    run.step("list", "tar", "-tvf", "all.tar")
    run.step("same", "tar", "-df", "all.tar", "-C", str(run.input))
    run.step("packed", "tar", *fixed, times, "-I", "gzip -9n", "-cf", "all.tar.gz", *tree)
    run.step("extract", "tar", "-xzf", "all.tar.gz")
    rename = ("--transform", "s/block/BLOCK/g", "--exclude=*9")
    run.step("renamed", "tar", *fixed, times, *rename, "-cf", "some.tar", *tree)
    run.step("grow", "tar", "-rf", "some.tar", "--mtime=@0", "--owner=0", "--group=0", "all.tar.gz")
    run.step("drop", "tar", "--delete", "-f", "some.tar", "all.tar.gz")


def packed(run: Run, program: str, *levels: tuple[str, ...]) -> None:
    """Packs at several levels and unpacks each again."""
    source = run.input / "data"
    for number, options in enumerate(levels):
        run.step(f"pack-{number}", program, *options, "-c", stdin=source, watch=number == 0)
        archive = next(run.outputs.glob(f"*-pack-{number}.stdout"))
        run.step(f"unpack-{number}", program, "-d", "-c", stdin=archive)


def gzip(run: Run) -> None:
    packed(run, "gzip", ("-1", "-n"), ("-6", "-n"), ("-9", "-n"))


def bzip2(run: Run) -> None:
    packed(run, "bzip2", ("-1",), ("-9",))


def pigz(run: Run) -> None:
    packed(run, "pigz", ("-p2", "-n", "-6"), ("-p2", "-n", "-9", "-b", "64", "-i"), ("-p2", "-nz"))


def zstd(run: Run) -> None:
    packed(run, "zstd", ("-q", "-T2", "-3"), ("-q", "-T2", "-12"), ("-q", "-T2", "-3", "--long=24"))


def lz4(run: Run) -> None:
    packed(run, "lz4", ("-q", "-1", "-BD"), ("-q", "-9", "-B4"), ("-q", "-12"))


def zip_(run: Run) -> None:
    run.step("zip", "zip", "-q", "-r", "-X", "-9", f"{run.work}/all.zip", str(run.input / "tree"))
    run.step("delete", "zip", "-q", "-d", "all.zip", "*7")
    run.step("test", "unzip", "-t", "all.zip", watch=True)
    run.step("list", "unzip", "-Z", "-v", "all.zip")
    run.step("extract", "unzip", "-q", "all.zip", "-d", "out")


def p7zip(run: Run) -> None:
    tree = str(run.input / "tree")
    # It prints the processor's name and free memory unless all its reports are off.
    quiet = ("-bd", "-bso0", "-mtc=off", "-mta=off")
    run.step("lzma2", "7z", "a", *quiet, "-mx=7", "-mmt=2", "a.7z", tree, watch=True)
    run.step("ppmd", "7z", "a", *quiet, "-m0=PPMd", "-mmt=2", "b.7z", tree)
    run.step("bzip2", "7z", "a", "-tzip", *quiet[:2], "-mm=BZip2", "-mmt=2", "c.zip", tree)
    for name in ("a.7z", "b.7z", "c.zip"):
        run.step(f"test-{name}", "7z", "t", *quiet[:2], name)
    run.step("extract", "7z", "x", *quiet[:2], "-oout", "a.7z")


def squashfs(run: Run) -> None:
    made = ("-no-progress", "-quiet", "-processors", "2", "-all-root", "-mkfs-time", "0")
    for kind in ("gzip", "xz", "zstd"):
        image = f"{kind}.img"
        run.step(kind, "mksquashfs", str(run.input / "tree"), image, "-comp", kind, *made)
    run.step("extract", "unsquashfs", "-quiet", "-no-progress", "-p", "2", "-d", "out", "xz.img")


def rsync(run: Run) -> None:
    flags = ("-a", "-i", "--checksum", "--no-whole-file", "--delete", "--fuzzy")
    # Over a pipe, as between machines, compressed, with its two processes on each side.
    pipe = ("-z", "-e", "sh -c 'shift; exec \"$@\"' --")
    # Several processes tell what they do, in the order of the moment.
    told = '"$@" > told && sort told && rm told'
    for number, source in enumerate(("tree", "later", "tree")):
        for name, words in (("copy", ("copy/",)), ("pipe", (*pipe, "host:pipe/"))):
            copy = ("rsync", *flags, f"{run.input}/{source}/", *words)
            run.step(f"{name}-{number}", "sh", "-c", told, "sh", *copy)
    run.step("same", "diff", "-r", "copy", "pipe")


def text_tools(run: Run) -> None:
    """sort with threads and with spills to files, and what reads sorted files."""
    one, two = (str(run.input / name) for name in ("one", "two"))
    spill = ("-S", "4M", "-T", ".", "--parallel=2")
    run.step("sort", "sort", "--parallel=2", "-S", "200M", one, "-o", "one.sorted", watch=True)
    run.step("spill", "sort", *spill, two, "-o", "two.sorted")
    run.step("numbers", "sort", *spill, "--compress-program=gzip", "-k7,7g", "-k2,3r", one)
    run.step("human", "sort", "-V", "--parallel=2", "-u", two)
    run.step("check", "sort", "-c", "one.sorted")
    run.step("merge", "sort", "-m", "one.sorted", "two.sorted", "-o", "all")
    run.step("uniq", "uniq", "-c", "-w", "8", "all")
    run.step("join", "join", "-a1", "--nocheck-order", "one.sorted", "two.sorted")
    run.step("comm", "comm", "--nocheck-order", "one.sorted", "two.sorted")
    run.step("reverse", "tac", "all")
    run.step("shuffle", "shuf", f"--random-source={one}", two)
    run.step("tsort", "tsort", str(run.input / "pairs"))


def text_input(folder: Path) -> None:
    inputs_files.lines(folder / "one", 250_000, 57)
    inputs_files.lines(folder / "two", 150_000, 58)
    pairs = (f"{n} {n * 7919 % 60_000 + n}\n" for n in range(1, 60_000))
    (folder / "pairs").write_text("".join(pairs))


def grep(run: Run) -> None:
    text = str(run.input / "text")
    (run.work / "patterns").write_text("".join(f"{n * 37} [bc]\n" for n in range(1500)))
    run.step("expressions", "grep", "-n", "-E", r"(slab|shard) .*\b(door|page)\b.*[0-9]7$", text)
    run.step("back", "grep", "-c", "-E", r"(\w+) \w+ \1", text)
    run.step("many", "grep", "-f", "patterns", text, watch=True)
    run.step("fixed", "grep", "-o", "-i", "-F", "-e", "CACHE LINE", "-e", "fork", text)
    run.step("perl", "grep", "-P", r"(?<=slab )(?!shard)\w{5,}(?= [0-9.]+$)", text)
    run.step("tree", "grep", "-r", "-l", "map leaf", str(run.input / "tree"))


def searched(folder: Path, lines: int) -> None:
    inputs_files.lines(folder / "text", lines, 59)
    inputs_files.files(folder, 1500)


def ripgrep(run: Run) -> None:
    text, tree = str(run.input / "text"), str(run.input / "tree")
    (run.work / "patterns").write_text("".join(f"^{n * 37} [bc]\n" for n in range(3000)))
    # Two threads print what they find in an order of their own unless it is sorted after.
    found = "rg -j2 -n --no-heading 'map (leaf|page)|slab.*door' \"$0\" | LC_ALL=C sort"
    for number in range(8):
        run.step(f"threads-{number}", "sh", "-c", found, tree)
    run.step("many", "rg", "-c", "-f", "patterns", text, watch=True)
    run.step("unicode", "rg", "-o", "-i", r"\b\p{L}{5}\b \p{L}+ (?-u:\d)", text)
    # Its other records hold times.
    json = 'rg --json -j1 \'root .* stack 0.9\' "$0" | grep \'"type":"match"\''
    run.step("json", "sh", "-c", json, text)
    run.step("replace", "rg", "-r", "<$2 $1>", r"(\w+) (slab|shard)", text)


def sed(run: Run) -> None:
    text = str(run.input / "text")
    run.step("expressions", "sed", "-E", r"s/(\w+) (slab|shard)/\2-\1/g;/^7/d;y/abc/ABC/", text)
    run.step("hold", "sed", "-n", "-E", r"H;/^[0-9]*99 /{x;s/\n/|/g;p}", text)
    run.step("join", "sed", "-e", ":a;N;$!{/\\n.*7$/!ba};s/\\n/ /g", text)
    script = "".join(f"s/{word}{n}/<{n}>/g\n" for n in range(9) for word in inputs.WORDS)
    (run.work / "script").write_text(script + "/page/{s/ /_/3;t;s/./#/}\n")
    run.step("script", "sed", "-f", "script", text, watch=True)


def jq(run: Run) -> None:
    source = str(run.input / "records.json")
    run.step("format", "jq", "-S", ".", source, watch=True)
    group = "group_by(.kind) | map({kind: .[0].kind, n: length, w: (map(.weight) | add)})"
    run.step("group", "jq", group, source)
    index = "map({key: (.id | tostring), value: .tags}) | from_entries"
    run.step("index", "jq", "-c", index, source)
    run.step("paths", "jq", "-c", '[paths(type == "number")] | length, (.[:99] | tostream)', source)
    words = '[.[].note | gsub("(?<a>[a-z]+) slab"; "\\(.a)!") | split(" ")[]] | unique'
    run.step("words", "jq", words, source)
    run.step("reduce", "jq", "reduce .[].parts[] as $p ({}; .[$p.name] += $p.size)", source)
    run.step("stream", "jq", "-c", "--stream", 'select(length == 2 and .[0][1] == "note")', source)


def diff(run: Run) -> None:
    base, mine, yours = (str(run.input / name) for name in ("base", "mine", "yours"))
    # Its exit status tells that the files differ.
    for name, options in (("unified", "-u"), ("minimal", "--minimal"), ("sides", "-y -W 150")):
        run.step(name, "sh", "-c", f"diff {options} $0 $1; test $? = 1", base, mine)
    run.step("threes", "sh", "-c", "diff3 -m $0 $1 $2; test $? = 1", mine, base, yours)
    (run.work / "patch").write_bytes(next(run.outputs.glob("*-unified.stdout")).read_bytes())
    run.step("patch", "patch", "-o", "patched", base, "patch")
    run.step("same", "cmp", "patched", mine)


def vim(run: Run) -> None:
    flags = ("-u", "NONE", "-i", "NONE", "-n", "-N", "-es", "-S", str(SCRIPTS / "work.vim"))
    run.step("edit", "vim", *flags, str(run.input / "text"), watch=True)


def neovim(run: Run) -> None:
    flags = ("-u", "NONE", "-i", "NONE", "-n")
    text = str(run.input / "text")
    run.step("ex", "nvim", *flags, "-es", "-S", str(SCRIPTS / "work.vim"), text, watch=True)
    (run.work / "edited").rename(run.work / "edited-ex")
    # An error in the script would leave it waiting for the next key.
    words = ("-c", f"luafile {NVIM_SCRIPT}", "-c", "cquit")
    run.step("lua", "nvim", *flags, "--headless", *words, text, watch=True)


def emacs(run: Run) -> None:
    (run.work / "work.el").write_bytes((run.input / "work.el").read_bytes())
    batch = ("emacs", "-Q", "--batch", "-L", ".")
    run.step("compile", *batch, "-f", "batch-byte-compile", "work.el", watch=True)
    work = f'(work-run "{run.input}/text")'
    run.step("work", *batch, "-l", "work", "--eval", work)
    run.step("source", *batch, "-l", "work.el", "--eval", work)


def emacs_input(folder: Path) -> None:
    inputs_files.elisp(folder / "work.el")
    inputs_files.lines(folder / "text", 40_000, 61)


def openssl(run: Run) -> None:
    source = str(run.input / "data")
    # Figures of speed are no data: only that it runs, in two processes, is asked.
    for words in ("-evp sha256", "-evp aes-256-gcm", "ecdsap256"):
        speed = f"openssl speed -seconds 1 -multi 2 {words} > speed.log 2>&1"
        run.step(f"speed-{words.split()[-1]}", "sh", "-c", speed)
    for kind in ("sha256", "sha3-512", "blake2b512", "md5"):
        run.step(kind, "openssl", "dgst", f"-{kind}", source)
    key = ("-pbkdf2", "-iter", "200000", "-S", "0011223344556677", "-pass", "pass:x")
    for kind in ("aes-256-cbc", "chacha20", "camellia-128-ctr"):
        run.step(kind, "openssl", "enc", f"-{kind}", *key, "-in", source, "-out", f"{kind}.enc")
        run.step(f"{kind}-d", "openssl", "enc", f"-{kind}", "-d", *key, "-in", f"{kind}.enc")
    # -quiet is not known to every version: dots of progress are dropped.
    make = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out key.pem 2> key.log"
    run.step("key", "sh", "-c", make)
    run.step("public", "openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
    run.step("sign", "openssl", "dgst", "-sha256", "-sign", "key.pem", "-out", "signed", source)
    verify = ("-verify", "public.pem", "-signature", "signed")
    run.step("verify", "openssl", "dgst", "-sha256", *verify, source)
    subject = ("-subj", "/CN=example.org", "-days", "2", "-out", "cert.pem")
    run.step("certificate", "openssl", "req", "-x509", "-new", "-key", "key.pem", *subject)
    run.step("trusted", "openssl", "verify", "-CAfile", "cert.pem", "cert.pem")
    run.step("primes", "openssl", "prime", *map(str, range(10**60 + 1, 10**60 + 99, 2)))


def curl(run: Run) -> None:
    port = run.work / "port"
    folder = run.input / "tree"
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*-*")) if path.is_file()]
    server = (sys.executable, str(SCRIPTS / "serve.py"), str(folder), str(port))
    with run.background("server", *server) as child:
        end = time.monotonic() + START_SECONDS
        while not port.exists():
            if child.poll() is not None or time.monotonic() > end:
                raise Failure(f"run '{run.name}': the web server did not start")
            time.sleep(0.05)
        at = f"http://127.0.0.1:{port.read_text()}"
        for kind in ("plain", "packed"):
            prefix = "packed/" if kind == "packed" else ""
            wanted = (f'url = "{at}/{prefix}{p}"\noutput = "{kind}/{p}"\n' for p in paths)
            (run.logs / f"{kind}.config").write_text("".join(wanted))
            config = ("-K", str(run.logs / f"{kind}.config"))
            flags = ("-sS", "-f", "--create-dirs", "--compressed")
            run.step(kind, "curl", *flags, *config, watch=True)
            run.step(
                f"{kind}-parallel",
                "curl",
                *flags,
                "--no-progress-meter",
                "-Z",
                "--parallel-max",
                "8",
                *config,
            )
        for number, path in enumerate(paths[:40]):
            run.step(f"post-{number}", "curl", "-sS", "--data-binary", f"@{folder / path}", at)


def ssh_keygen(run: Run) -> None:
    for kind in ("rsa", "ed25519", "ecdsa"):
        key = run.work / kind
        key.write_bytes((run.input / kind).read_bytes())
        key.chmod(0o600)
        run.step(f"{kind}-public", "ssh-keygen", "-y", "-f", kind)
        run.step(f"{kind}-print", "ssh-keygen", "-l", "-v", "-f", str(run.input / f"{kind}.pub"))
    for number in range(10):
        run.step(f"find-{number}", "ssh-keygen", "-F", f"host{number * 1999}.example.org",
                 "-f", str(run.input / "known_hosts"))  # fmt: skip
    (run.work / "known_hosts").write_bytes((run.input / "known_hosts").read_bytes())
    run.step("remove", "ssh-keygen", "-R", "10.0.0.7", "-f", "known_hosts")
    message = run.input / "serials"
    for number in range(20):
        run.step(f"sign-{number}", "ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", "ed25519",
                 stdin=message)  # fmt: skip
    signed = next(run.outputs.glob("*-sign-0.stdout"))
    verify = ("-Y", "verify", "-I", "x@example.org", "-n", "file", "-s", str(signed))
    run.step("verify", "ssh-keygen", *verify, "-f", str(run.input / "allowed"), stdin=message)
    revoke = ("-k", "-q", "-f", "revoked", "-s", str(run.input / "rsa.pub"))
    run.step("revoke", "ssh-keygen", *revoke, str(message))
    run.step("hash", "sh", "-c", "ssh-keygen -H -f known_hosts > /dev/null 2>&1")
    new = ("-q", "-t", "rsa", "-b", "3072", "-N", "x", "-a", "40", "-f", "new")
    run.step("new", "ssh-keygen", *new)
    run.step("certify", "ssh-keygen", "-q", "-s", "rsa", "-I", "x", "-n", "y", "new.pub")


def gpg(run: Run) -> None:
    home = run.work / "g"
    home.mkdir(mode=0o700)
    # The agent's sockets lie in this folder: a short name, since theirs may have 107 bytes.
    (home / "gpg-agent.conf").write_text("extra-socket none\nbrowser-socket none\n")
    base = ("gpg", "--homedir", "g", "-q", "--batch", "--no-tty", "--trust-model", "always")
    unlocked = ("--pinentry-mode", "loopback", "--passphrase", "x")
    data = str(run.input / "data")
    try:
        for kind in ("default", "future-default"):
            name = f"{kind}@example.org"
            make = ("--quick-generate-key", name, kind, "default", "never")
            run.step(f"key-{kind}", "sh", "-c", '"$@" 2> key.log', "sh", *base, *unlocked, *make)
            run.step(f"encrypt-{kind}", *base, "-e", "-r", name, "-o", f"{kind}.gpg", data)
            run.step(f"decrypt-{kind}", *base, *unlocked, "-d", f"{kind}.gpg")
            sign = ("--detach-sign", "-u", name, "-o", f"{kind}.sig", data)
            run.step(f"sign-{kind}", *base, *unlocked, *sign)
            # It tells the time and the key; that the signature is good is its exit status.
            verify = ("--verify", f"{kind}.sig", data)
            run.step(f"verify-{kind}", "sh", "-c", '"$@" 2> verify.log', "sh", *base, *verify)
        secret = ("-c", "--cipher-algo", "CAMELLIA256", "-z", "9", "-o", "shared.gpg", data)
        run.step("lock", *base, *unlocked, *secret)
        run.step("unlock", *base, *unlocked, "-d", "shared.gpg")
        run.step("digests", *base, "--print-mds", data)
    finally:
        run.step("end", "gpgconf", "--homedir", "g", "--kill", "all")


def qemu_img(run: Run) -> None:
    raw = str(run.input / "data")
    for kind in ("qcow2", "vmdk", "vdi", "vpc"):
        run.step(kind, "qemu-img", "convert", "-m", "2", "-f", "raw", "-O", kind, raw, f"a.{kind}")
        run.step(f"{kind}-same", "qemu-img", "compare", "-f", "raw", "-F", kind, raw, f"a.{kind}")
    small = ("-c", "-o", "cluster_size=16k", "-m", "2", "-f", "raw", "-O", "qcow2")
    run.step("small", "qemu-img", "convert", *small, raw, "small.qcow2", watch=True)
    run.step("check", "qemu-img", "check", "--output=json", "small.qcow2")
    run.step("overlay", "qemu-img", "create", "-q", "-f", "qcow2", "-b", "small.qcow2",
             "-F", "qcow2", "over.qcow2", "64M")  # fmt: skip
    run.step("commit", "qemu-img", "commit", "-q", "-d", "over.qcow2")
    run.step("map", "qemu-img", "map", "--output=json", "small.qcow2")
    run.step("back", "qemu-img", "convert", "-m", "2", "-O", "raw", "small.qcow2", "back.raw")
    run.step("bench", "sh", "-c", "qemu-img bench -c 5000 -d 32 -f qcow2 a.qcow2 > /dev/null")


def xml(run: Run) -> None:
    source = str(run.input / "items.xml")
    run.step("format", "xmllint", "--format", source, watch=True)
    run.step("canonical", "xmllint", "--c14n", source)
    run.step("find", "xmllint", "--xpath", "//item[@kind='slab']/part[contains(., 'door')]", source)
    run.step("schema", "xmllint", "--noout", "--relaxng", str(run.input / "items.rng"), source)
    run.step("stream", "xmllint", "--noout", "--stream", source)
    run.step("style", "xsltproc", str(run.input / "group.xsl"), source, watch=True)


Prepare = Callable[[Path], None]


def data(mebibytes: int) -> Prepare:
    def prepare(folder: Path) -> None:
        inputs.compressible(folder / "data", mebibytes)
        (folder / "small").write_text("a small file for the proof\n" * 99)

    return prepare


def of_lines(count: int) -> Prepare:
    return lambda folder: inputs_files.lines(folder / "text", count, 60)


def of_files(count: int) -> Prepare:
    return lambda folder: inputs_files.files(folder, count)


ARCHIVES, TEXT, TOOLS = "versions and archives", "text and documents", "tools"

CASES = (
    Case(
        "tar", ("tar", "gzip"), of_files(3000), tar, proof=("tar", "-cf", "a.tar", "@INPUT@"),
        packages=("tar", "gzip"), group=ARCHIVES,
        what="3,000 files: create, compare, rename, delete, extract",
    ),
    Case(
        "gzip", ("gzip",), data(16), gzip, ("gzip", "-kc", "@INPUT@/small"), group=ARCHIVES,
        what="16 MiB packed at three levels, and unpacked",
    ),
    Case(
        "bzip2", ("bzip2",), data(8), bzip2, ("bzip2", "-kc", "@INPUT@/small"), group=ARCHIVES,
        what="8 MiB packed at two levels, and unpacked",
    ),
    Case(
        "pigz", ("pigz",), data(16), pigz, ("pigz", "-p2", "-kc", "@INPUT@/small"), group=ARCHIVES,
        what="16 MiB packed by two threads, and unpacked",
    ),
    Case(
        "zstd", ("zstd",), data(32), zstd, ("zstd", "-T2", "-kc", "@INPUT@/small"), group=ARCHIVES,
        what="32 MiB packed by two threads, and unpacked",
    ),
    Case(
        "lz4", ("lz4",), data(48), lz4, ("lz4", "-kc", "@INPUT@/small"), group=ARCHIVES,
        what="48 MiB packed at three levels, and unpacked",
    ),
    Case(
        "zip", ("zip", "unzip"), of_files(4000), zip_,
        proof=("sh", "-c", "zip -qr a.zip $0/block; unzip -qt a.zip", "@INPUT@/tree"),
        proof_of=("zip", "unzip"), packages=("zip", "unzip"), group=ARCHIVES,
        what="4,000 files: zip, delete, test, list, unzip",
    ),
    Case(
        "7zip", ("7z",), of_files(1000), p7zip, proof=("7z", "a", "a.7z", "@INPUT@/tree/block"),
        packages=("p7zip-full",), group=ARCHIVES,
        what="1,000 files as LZMA2, PPMd and zip, by two threads",
    ),
    Case(
        "squashfs", ("mksquashfs", "unsquashfs"), of_files(1000), squashfs,
        proof=("mksquashfs", "@INPUT@/tree/block", "a.img"), packages=("squashfs-tools",),
        group=ARCHIVES, what="1,000 files in three file systems, by two threads",
    ),
    Case(
        "rsync", ("rsync",), lambda folder: inputs_files.two_trees(folder, 5000), rsync,
        proof=("rsync", "-a", "@INPUT@/tree/block", "copy"), group=ARCHIVES,
        what="5,000 files copied and brought up to date, also over a pipe",
    ),
    Case(
        "sort", ("sort", "join", "comm", "tsort", "shuf"), text_input, text_tools,
        proof=("sh", "-c", "sort $0 | uniq | join - $0", "@INPUT@/pairs"),
        proof_of=("sort", "uniq", "join"), packages=("coreutils", "gzip"), group=TEXT,
        what="sort in threads and with spills, uniq, join, comm, tsort",
    ),
    Case(
        "grep", ("grep",), lambda folder: searched(folder, 200_000), grep,
        proof=("grep", "slab", "@INPUT@/text"), group=TEXT,
        what="200,000 lines: expressions, 1,500 patterns at once, PCRE",
    ),
    Case(
        "ripgrep", ("rg",), lambda folder: searched(folder, 200_000), ripgrep,
        proof=("rg", "-c", "slab", "@INPUT@/text"), group=TEXT,
        what="1,500 files by two threads, 3,000 patterns at once, JSON",
    ),
    Case(
        "sed", ("sed",), of_lines(60_000), sed, ("sed", "-n", "s/a/b/p", "@INPUT@/text"),
        group=TEXT, what="60,000 lines: groups, hold space, 270 substitutions",
    ),
    Case(
        "jq", ("jq",), lambda folder: inputs_files.records(folder / "records.json", 20_000), jq,
        proof=("jq", "length", "@INPUT@/records.json"), group=TEXT,
        what="20,000 records: group, paths, expressions, stream",
    ),
    Case(
        "diff", ("diff", "diff3", "patch", "cmp"),
        lambda folder: inputs_files.edited(folder, 120_000), diff,
        proof=("diff", "@INPUT@/base", "@INPUT@/mine"), packages=("diffutils", "patch"), group=TEXT,
        what="120,000 lines: diff, diff3, patch, cmp",
    ),
    Case(
        "vim", ("vim.basic",), of_lines(16_000), vim,
        proof=("vim", "-u", "NONE", "-es", "+qa!", "@INPUT@/text"), proof_of=("vim",), group=TEXT,
        what="16,000 lines: sort, substitute, undo, folds, macros, script",
    ),
    Case(
        "neovim", ("nvim",), of_lines(16_000), neovim,
        proof=("nvim", "-u", "NONE", "-i", "NONE", "-es", "+qa!", "@INPUT@/text"),
        env={"PROOF_SCRIPT": NVIM_SCRIPT}, may_differ=(".*",), group=TEXT,
        what="vim's edits; marks, undo, syntax, MessagePack, threads, a second one over RPC",
        note="what LuaJIT holds keeps to its own allocator",
    ),
    Case(
        "emacs", ("emacs",), emacs_input, emacs,
        proof=("emacs", "-Q", "--batch", "--eval", "(princ 1)"), packages=("emacs-nox",),
        group=TEXT, what="400 functions compiled, a text of 40,000 lines rewritten",
    ),
    Case(
        "openssl", ("openssl",), data(16), openssl,
        proof=("openssl", "dgst", "-sha256", "@INPUT@/small"),
        may_differ=("speed.log", "key.pem", "public.pem", "key.log", "signed", "cert.pem"),
        group=TOOLS, what="digests, ciphers, keys, signatures, certificates, speed",
        note="keys and signatures are random: they are verified; so is the time to find a key",
    ),
    Case(
        "curl", ("curl",), of_files(600), curl, proof=("curl", "-s", "file://@INPUT@/tree/link"),
        may_differ=("port",), group=TOOLS,
        what="1,200 files fetched in order and eight at a time, 40 posted",
    ),
    Case(
        "ssh-keygen", ("ssh-keygen",), inputs_files.keys, ssh_keygen,
        proof=("ssh-keygen", "-l", "-f", "@INPUT@/rsa.pub"), proof_of=("ssh-keygen",),
        # New keys, random hashes, and the time at which keys were revoked.
        may_differ=("new", "new.pub", "new-cert.pub", "known_hosts", "revoked"),
        packages=("openssh-client",), group=TOOLS,
        what="keys, signatures, 20,000 hosts, 200,000 revoked",
        note="keys and hashes are random",
    ),
    Case(
        "gpg", ("gpg", "gpg-agent", "gpgconf"), data(12), gpg,
        proof=("gpg", "--homedir", ".", "--print-md", "sha256", "@INPUT@/small"),
        proof_of=("gpg",),
        may_differ=("g/*", "*.gpg", "*.sig", "*.log"),  # random, with times
        packages=("gnupg",), group=TOOLS,
        what="keys made; encrypt, decrypt, sign, verify, through the agent",
        note="what is encrypted is random: it is decrypted",
    ),
    Case(
        "qemu-img", ("qemu-img",), data(32), qemu_img,
        proof=("qemu-img", "info", "@INPUT@/data"), proof_of=("qemu-img",),
        may_differ=("a.vmdk", "a.vdi", "a.vpc"),  # random identifiers and times; compared by it
        packages=("qemu-utils",), group=TOOLS,
        what="disk images converted to four formats, compared, committed",
        note="three formats hold random identifiers: compared by qemu-img",
    ),
    Case(
        "libxml", ("xmllint", "xsltproc"), lambda folder: inputs_files.xml(folder, 15_000), xml,
        proof=("sh", "-c", "xmllint $0 && xsltproc $0 $0", "@INPUT@/group.xsl"),
        proof_of=("libxml2.so.2",), packages=("libxml2-utils", "xsltproc"), group=TEXT,
        what="15,000 elements: format, XPath, RELAX NG, XSLT",
    ),
)  # fmt: skip
