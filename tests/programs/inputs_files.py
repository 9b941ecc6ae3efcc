"""Inputs of the cases about files, texts and archives, all made from seeds."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

from tests.programs import inputs
from tests.programs.inputs import A_DAY, WORDS


def lines(file: Path, count: int, seed: int) -> None:
    """`count` lines of a number, five words and a number of another kind."""
    rng = random.Random(seed)
    with file.open("w") as out:
        for _ in range(count):
            words = " ".join(rng.choices(WORDS, k=5))
            out.write(f"{rng.randrange(count)} {words} {rng.random():.6f}\n")


def edited(folder: Path, count: int) -> None:
    """A text and two texts made of it by edits here and there."""
    rng = random.Random(50)
    base = inputs.text(rng, count).splitlines(True)
    (folder / "base").write_text("".join(base))
    for name in ("mine", "yours"):
        text = list(base)
        for _ in range(count // 40):
            at = rng.randrange(len(text))
            change = rng.randrange(3)
            if change == 0:
                text[at] = f"{name} {inputs.sentence(rng)}\n"
            elif change == 1:
                text[at:at] = [f"{name} adds {inputs.sentence(rng)}\n"] * rng.randint(1, 4)
            else:
                del text[at : at + rng.randint(1, 3)]
        (folder / name).write_text("".join(text))


def files(folder: Path, count: int) -> None:
    """A tree of texts and noise with fixed times, for programs that pack and copy."""
    rng = random.Random(51)
    root = folder / "tree"
    for number in range(count):
        place = root / rng.choice(WORDS) / rng.choice(WORDS)
        place.mkdir(parents=True, exist_ok=True)
        body = inputs.text(rng, rng.randint(1, 300)).encode()
        if number % 5 == 0:
            body = rng.randbytes(rng.randint(1, 40_000))
        (place / f"{rng.choice(WORDS)}-{number}").write_bytes(body)
    (root / "link").symlink_to("block")
    still(root)


def still(root: Path) -> None:
    """Gives everything below `root` one modification time."""
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (A_DAY, A_DAY), follow_symlinks=False)
    os.utime(root, (A_DAY, A_DAY))


def two_trees(folder: Path, count: int) -> None:
    """The tree and what has become of it: files changed, grown, moved and gone."""
    files(folder, count)
    shutil.copytree(folder / "tree", folder / "later", symlinks=True)
    rng = random.Random(52)
    for path in sorted(p for p in (folder / "later").rglob("*") if p.is_file()):
        change = rng.randrange(8)
        body = path.read_bytes()
        if change == 0:
            path.unlink()
        elif change == 1:
            path.rename(path.with_name(path.name + "-moved"))
        elif change < 5:
            at = rng.randrange(len(body) + 1)
            path.write_bytes(body[:at] + inputs.sentence(rng).encode() + body[at:])
    still(folder / "later")


def records(file: Path, count: int) -> None:
    """A JSON array of nested records."""
    rng = random.Random(53)
    rows = [
        {
            "id": number,
            "kind": rng.choice(WORDS),
            "tags": rng.sample(WORDS, 4),
            "note": inputs.sentence(rng),
            "weight": rng.randrange(1 << 20) / 64,
            "parts": [{"name": rng.choice(WORDS), "size": rng.randrange(999)} for _ in range(3)],
        }
        for number in range(count)
    ]
    file.write_text(json.dumps(rows))


def xml(folder: Path, items: int) -> None:
    """A document, a schema that it satisfies, and a stylesheet that groups and sorts it."""
    rng = random.Random(54)
    with (folder / "items.xml").open("w") as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n<items xmlns:x="urn:example:x">\n')
        for number in range(items):
            parts = "".join(
                f'<part x:size="{rng.randrange(999)}">{inputs.sentence(rng, 6)}</part>'
                for _ in range(rng.randint(1, 4))
            )
            out.write(
                f'<item id="i{number}" kind="{rng.choice(WORDS)}"><note>{inputs.sentence(rng)} '
                f"&amp; &#233;</note>{parts}<!-- {number} --></item>\n"
            )
        out.write("</items>\n")
    (folder / "items.rng").write_text(
        """<grammar xmlns="http://relaxng.org/ns/structure/1.0"><start><element name="items">
<oneOrMore><element name="item"><attribute name="id"/><attribute name="kind"/>
<element name="note"><text/></element><oneOrMore><element name="part">
<attribute name="size" ns="urn:example:x"/><text/></element></oneOrMore></element></oneOrMore>
</element></start></grammar>
"""
    )
    (folder / "group.xsl").write_text(
        """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:x="urn:example:x">
<xsl:key name="kind" match="item" use="@kind"/>
<xsl:template match="/items"><report>
<xsl:for-each select="item[generate-id() = generate-id(key('kind', @kind)[1])]">
<xsl:sort select="@kind"/>
<kind name="{@kind}" items="{count(key('kind', @kind))}"
size="{sum(key('kind', @kind)/part/@x:size)}">
<xsl:for-each select="key('kind', @kind)"><xsl:sort select="note"/>
<xsl:if test="contains(note, 'slab')"><row id="{@id}"><xsl:value-of
select="translate(note, 'abc', 'ABC')"/>: <xsl:apply-templates select="part"/></row></xsl:if>
</xsl:for-each></kind></xsl:for-each></report></xsl:template>
<xsl:template match="part"><p><xsl:value-of select="concat(position(), ' ', .)"/></p></xsl:template>
</xsl:stylesheet>
"""
    )


def keys(folder: Path) -> None:
    """Keys made anew for each check of the case, one set for both of its runs."""
    for kind, bits in (("rsa", "2048"), ("ed25519", "256"), ("ecdsa", "256")):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", kind, "-b", bits, "-N", "", "-C", "x", "-f", folder / kind],
            check=True,
        )
    public = (folder / "ed25519.pub").read_text().split()[:2]
    with (folder / "known_hosts").open("w") as out:
        for number in range(20_000):
            out.write(f"host{number}.example.org,10.0.0.{number % 256} ")
            out.write(" ".join(public) + "\n")
    (folder / "allowed").write_text(f"x@example.org {' '.join(public)}\n")
    (folder / "serials").write_text("".join(f"serial: {n * 3}\n" for n in range(1, 200_000)))


def elisp(file: Path) -> None:
    """A library to be compiled, and used to sort, match, count and rewrite a text."""
    rng = random.Random(56)
    parts = [";;; work.el --- generated  -*- lexical-binding: t; -*-", "(require 'cl-lib)"]
    for number in range(400):
        word = rng.choice(WORDS)
        parts.append(
            f'''(defun work-{number} (text &optional depth)
  "Rewrite TEXT at DEPTH."
  (cl-loop for word in (split-string text) for n from 0
           when (string-match-p "{word}" word) collect (format "%s-%d" word n) into found
           finally return (pcase (length found)
                            (0 (upcase text))
                            ((pred (< 3)) (let ((deep (or depth 0)))
                                            (if (> deep 2) text
                                              (work-{max(0, number - 7)} text (1+ deep)))))
                            (_ (mapconcat #'identity (nreverse found) " ")))))'''
        )
    table = " ".join(f"work-{number}" for number in range(400))
    parts.append(
        f"""(defconst work-all '({table}))
(defun work-run (file)
  (let ((counts (make-hash-table :test #'equal)) (sum 0))
    (with-temp-buffer
      (insert-file-contents file)
      (sort-numeric-fields 1 (point-min) (point-max))
      (goto-char (point-min))
      (while (re-search-forward "\\\\(slab\\\\|shard\\\\) \\\\([a-z]+\\\\)" nil t)
        (cl-incf (gethash (match-string 2) counts 0))
        (replace-match "<\\\\2 \\\\1>"))
      (goto-char (point-min))
      (dotimes (n 4000)
        (let ((line (buffer-substring-no-properties (line-beginning-position)
                                                    (line-end-position))))
          (setq sum (+ sum (length (funcall (nth (% n 400) work-all) line)))))
        (forward-line))
      (reverse-region (point-min) (point-max))
      (write-region nil nil "rewritten" nil 'quiet)
      (princ (format "%d %s %s\\n" sum (md5 (current-buffer))
                     (sort (cl-loop for k being the hash-keys of counts using (hash-values v)
                                    collect (cons k v))
                           (lambda (a b) (string< (car a) (car b)))))))))
(provide 'work)"""
    )
    file.write_text("\n".join(parts) + "\n")
