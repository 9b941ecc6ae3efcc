"""Problems for solvers, all made from seeds."""

from __future__ import annotations

import random
from pathlib import Path


def sat(file: Path, variables: int, seed: int) -> None:
    """Random 3-SAT where it is hardest: about 4.26 clauses for each variable."""
    rng = random.Random(seed)
    clauses = int(variables * 4.26)
    with file.open("w") as out:
        out.write(f"p cnf {variables} {clauses}\n")
        for _ in range(clauses):
            three = rng.sample(range(1, variables + 1), 3)
            out.write(" ".join(str(v if rng.random() < 0.5 else -v) for v in three) + " 0\n")


def pigeons(file: Path, holes: int) -> None:
    """One pigeon more than there are holes: no solution, and no short proof."""
    at = [[p * holes + h + 1 for h in range(holes)] for p in range(holes + 1)]
    rows = [list(pigeon) for pigeon in at]
    for hole in range(holes):
        rows += [[-at[a][hole], -at[b][hole]] for b in range(holes + 1) for a in range(b)]
    lines = "".join(" ".join(map(str, row)) + " 0\n" for row in rows)
    file.write_text(f"p cnf {(holes + 1) * holes} {len(rows)}\n{lines}")


def smt(folder: Path) -> None:
    """Bit vectors, integers, arrays, functions with quantifiers, reals, strings and an optimum."""
    rng = random.Random(80)
    (folder / "bits.smt2").write_text(
        "(set-logic QF_BV)\n(declare-const a (_ BitVec 20))\n(declare-const b (_ BitVec 20))\n"
        "(assert (= (bvmul ((_ zero_extend 20) a) ((_ zero_extend 20) b)) "
        f"(_ bv{1_000_003 * 999_983} 40)))\n"
        "(assert (bvugt a (_ bv1 20)))\n(assert (bvuge a b))\n(check-sat)\n(get-value (a b))\n"
    )
    queens = [f"(declare-const q{n} Int)(assert (and (<= 1 q{n}) (<= q{n} 14)))" for n in range(14)]
    queens += [
        f"(assert (and (distinct q{a} q{b}) (distinct (- q{a} q{b}) {b - a}) "
        f"(distinct (- q{b} q{a}) {b - a})))"
        for b in range(14) for a in range(b)
    ]  # fmt: skip
    (folder / "queens.smt2").write_text("\n".join([*queens, "(check-sat)\n"]))
    stores = "a"
    for n in range(60):
        stores = f"(store {stores} i{n} (+ 1 (select a i{(n * 7) % 60})))"
    (folder / "arrays.smt2").write_text(
        "(declare-const a (Array Int Int))\n"
        + "".join(f"(declare-const i{n} Int)(assert (<= 0 i{n} 40))\n" for n in range(60))
        + f"(declare-const b (Array Int Int))\n(assert (= b {stores}))\n"
        + "".join(f"(assert (> (select b i{n}) (select a i{n})))\n" for n in range(0, 60, 9))
        + "(check-sat)\n"
    )
    (folder / "functions.smt2").write_text(
        "(declare-sort T)(declare-fun f (T T) T)(declare-const e T)(declare-fun inv (T) T)\n"
        "(assert (forall ((x T) (y T) (z T)) (= (f x (f y z)) (f (f x y) z))))\n"
        "(assert (forall ((x T)) (= (f e x) x)))\n(assert (forall ((x T)) (= (f (inv x) x) e)))\n"
        "(assert (not (forall ((x T)) (= (f x (inv x)) e))))\n(check-sat)\n"
    )
    reals = "".join(f"(declare-const x{n} Real)(assert (<= 0 x{n} 9))\n" for n in range(30))
    for _ in range(30):
        terms = " ".join(f"(* {rng.randint(-9, 9)} x{rng.randrange(30)})" for _ in range(8))
        reals += f"(assert (or (<= (+ {terms}) {rng.randint(1, 60)}) (> x{rng.randrange(30)} 8)))\n"
    (folder / "optimum.smt2").write_text(
        f"{reals}(maximize (+ {' '.join(f'x{n}' for n in range(30))}))\n(check-sat)\n"
        "(get-objectives)\n"
    )
    (folder / "strings.smt2").write_text(
        "(declare-const s String)(declare-const t String)\n"
        '(assert (str.in_re s (re.+ (re.union (str.to_re "ab") (str.to_re "ba")))))\n'
        "(assert (= (str.len s) 24))(assert (= t (str.substr s 3 9)))\n"
        '(assert (str.contains t "bb"))(assert (not (= (str.at s 12) (str.at s 13))))\n'
        "(check-sat)\n"
    )


def model(file: Path, depots: int, towns: int) -> None:
    """Where to build depots so that every town is served at the least cost."""
    rng = random.Random(81)
    costs = "\n".join(
        f"{d} " + " ".join(str(rng.randint(10, 99)) for _ in range(towns)) for d in range(depots)
    )
    heads = " ".join(map(str, range(towns)))
    fixed = "\n".join(f"{d} {rng.randint(100, 300)}" for d in range(depots))
    file.write_text(
        f"""set D := 0..{depots - 1};
set T := 0..{towns - 1};
param cost{{D, T}};
param fixed{{D}};
var open{{D}} binary;
var serve{{D, T}} >= 0, <= 1;
minimize total: sum{{d in D}} (fixed[d] * open[d]
    + sum{{t in T}} cost[d, t] * serve[d, t]);
s.t. served{{t in T}}: sum{{d in D}} serve[d, t] = 1;
s.t. only{{d in D, t in T}}: serve[d, t] <= open[d];
s.t. enough{{d in D}}: sum{{t in T}} serve[d, t] <= {towns // 4} * open[d];
solve;
display total, open;
data;
param cost : {heads} :=
{costs};
param fixed :=
{fixed};
end;
"""
    )
