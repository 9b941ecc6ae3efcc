"""What name servers and brokers are filled with, made from seeds."""

from __future__ import annotations

import random
from pathlib import Path

from tests.programs import inputs

NAMES = 20_000
MESSAGES = 6000


def zone(folder: Path) -> None:
    """`proof.example`: hosts of one to four addresses, with texts up to 900 bytes, and aliases."""
    rng = random.Random(81)
    with (folder / "zone").open("w") as out:
        out.write("$ORIGIN proof.example.\n$TTL 3600\n")
        out.write("@ SOA ns.proof.example. admin.proof.example. 1 7200 3600 86400 600\n")
        out.write("@ NS ns\nns A 127.0.0.1\n")
        for name in range(NAMES):
            for part in range(rng.randint(1, 4)):
                out.write(f"h{name} A 10.{part}.{name >> 8}.{name & 255}\n")
            if name % 3 == 0:
                out.write(f"h{name} AAAA 2001:db8::{name:x}\n")
            strings = (f'"{inputs.sentence(rng)[:250]}"' for _ in range(rng.choice((1, 1, 2, 12))))
            out.write(f"h{name} TXT {' '.join(strings)}\n")
            if name % 2 == 0:
                out.write(f"a{name} CNAME h{rng.randrange(NAMES)}\n")


def readings(folder: Path) -> None:
    inputs.lines(folder / "lines", 8000)
