"""Programs that solve and calculate: provers, optimisers, calculators of many digits."""

from __future__ import annotations

from pathlib import Path

from tests.programs import inputs_maths
from tests.programs.harness import SCRIPTS, Case, Failure, Run, nothing


def z3(run: Run) -> None:
    for problem in sorted(run.input.glob("*.smt2")):
        run.step(problem.stem, "z3", "smt.random_seed=1", str(problem), watch=True)


def sat_input(folder: Path) -> None:
    inputs_maths.pigeons(folder / "pigeons.cnf", 9)
    for seed in range(6):
        inputs_maths.sat(folder / f"random-{seed}.cnf", 210, seed)


def minisat(run: Run) -> None:
    for problem in sorted(run.input.glob("*.cnf")):
        # Exit status 10 and 20: satisfiable or not, the answer being in the file.
        solve = "minisat -verb=0 $0 $1 > /dev/null; test $? = 10 -o $? = 20"
        run.step(problem.stem, "sh", "-c", solve, str(problem), f"{problem.stem}.answer")


def clasp(run: Run) -> None:
    # Two threads find answers that depend on which is first: only whether there is one is data.
    solve = "clasp -t 2 --quiet=2 --seed=1 --time-limit=100 $0 | grep '^s '"
    for problem in sorted(run.input.glob("*.cnf")):
        run.step(problem.stem, "sh", "-c", solve, str(problem))
    alone = "clasp --seed=1 --quiet=1 $0 | grep '^[sv] '"
    run.step("alone", "sh", "-c", alone, str(run.input / "random-0.cnf"))


def glpk(run: Run) -> None:
    model = str(run.input / "depots.mod")
    # Its report on stdout holds times and memory used.
    for name, options in (("branch", "--cuts"), ("interior", "--nomip --interior")):
        words = f"glpsol {options} --model $0 -o {name}.txt --log {name}.log > /dev/null"
        run.step(name, "sh", "-c", words, model)
    run.step("translate", "sh", "-c", "glpsol --check --model $0 --wlp a.lp > /dev/null", model)


def maxima(run: Run) -> None:
    text = run.step("script", "maxima", "--very-quiet", "-b", str(SCRIPTS / "work.mac"))
    if MAXIMA_LAST not in text:  # it ends at an error, and says that all is well
        raise Failure(f"run '{run.name}': maxima stopped before its last line")


MAXIMA_LAST = "mod(power_mod(3,10^60,10^40+121),10^12)\n"
BC = """scale = 1000
pi = 4 * a(1)
pi
e(1)
s(1) ^ 2 + c(1) ^ 2
scale = 0
define f(n) { auto r; r = 1; while (n > 1) { r *= n; n -= 1; }; return r; }
f(3000)
define fib(n) { if (n < 2) return n; return fib(n - 1) + fib(n - 2); }
fib(21)
2 ^ 40000 % (3 ^ 9000)
for (i = 0; i < 30000; i++) a[i % 2000] += i * i
for (i = 0; i < 2000; i += 7) a[i]
"""
DC = """600k 2v p 3v p
0k [d1-d1<F*]dsFx
1 500 [lnd1-sn*ln1<G]sG sn lGx p
[d SA 1- d 0<H]sH 20000 lHx
3 900^ 2 3100^ 7 500^ | p
7 40000^ 10 30000^ ~ n p
16o 2 8000^ 1- p
"""


def calculators(run: Run) -> None:
    run.step("bc", "bc", "-l", "-q", str(run.input / "work.bc"), watch=True)
    run.step("dc", "dc", "-f", str(run.input / "work.dc"), watch=True)


def calculator_input(folder: Path) -> None:
    (folder / "work.bc").write_text(BC + "quit\n")
    (folder / "work.dc").write_text(DC)


GROUP = "mathematics"

CASES = (
    Case(
        "z3", ("z3",), inputs_maths.smt, z3, proof=("z3", "@INPUT@/bits.smt2"), group=GROUP,
        what="bit vectors, integers, arrays, quantifiers, reals, strings",
    ),
    Case(
        "minisat", ("minisat",), sat_input, minisat, proof=("minisat", "@INPUT@/random-0.cnf"),
        group=GROUP, what="seven problems of propositional logic",
    ),
    Case(
        "clasp", ("clasp",), sat_input, clasp, proof=("clasp", "@INPUT@/random-0.cnf"), group=GROUP,
        what="seven problems of propositional logic, by two threads",
        note="which solution is found",
    ),
    Case(
        "glpk", ("glpsol",),
        lambda folder: inputs_maths.model(folder / "depots.mod", 16, 44), glpk,
        proof=("glpsol", "--version"), proof_of=("glpsol",),
        may_differ=("*.log",),  # times and memory used
        packages=("glpk-utils",), group=GROUP,
        what="a mixed-integer model: cuts, interior point",
        note="logs of times",
    ),
    Case(
        "maxima", ("maxima",), nothing, maxima,
        proof=("maxima", "--very-quiet", "--batch-string", "1;"), may_differ=(".*",),
        packages=("maxima", "maxima-share"), group=GROUP,
        what="polynomials, matrices, integrals, series, equations, 1,200 digits", own="GCL's",
    ),
    Case(
        "bc", ("bc", "dc"), calculator_input, calculators,
        proof=("sh", "-c", "echo 1+1 | bc; dc -e '1 2+p'"), proof_of=("bc", "dc"),
        packages=("bc", "dc"), group=GROUP,
        what="thousands of digits of pi, e and roots; recursion, arrays",
    ),
)  # fmt: skip
