"""The prototype's figures, kept as data beside the rows that repeat them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bench.seed.report.figures import Ratio

_FILE = Path(__file__).resolve().parents[1] / "prototype.toml"


@dataclass(frozen=True)
class Prototype:
    title: str
    seed: str
    to_debian: float
    """To the best of the peers that a Debian system has."""
    to_all: float
    best_of_all: str


@dataclass(frozen=True)
class Prototypes:
    source: str
    rows: list[Prototype]


def beside(ratio: Ratio | None, theirs: float) -> str:
    """Where ours stands beside the prototype's ratio, as far as the interval says so."""
    if ratio is None or not ratio.is_known:
        return "not known"
    if ratio.high < theirs:
        return "behind"
    return "ahead" if ratio.low > theirs else "level"


def load() -> Prototypes:
    text = tomllib.loads(_FILE.read_text())
    rows = []
    for row in text["row"]:
        peers: dict[str, float] = row["peers"]
        best = max(peers, key=peers.__getitem__)
        rows.append(
            Prototype(
                title=row["title"],
                seed=row["seed"],
                to_debian=row["prototype"] / max(peers[p] for p in text["debian"] if p in peers),
                to_all=row["prototype"] / peers[best],
                best_of_all=best,
            )
        )
    return Prototypes(text["source"], rows)
