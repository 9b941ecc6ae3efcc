"""Wrong orders are put into the code, and exploring must find each."""

from dataclasses import dataclass

import pytest

from tests.explore.explorer import ROOT, Explorer


@dataclass(frozen=True)
class Break:
    name: str
    file: str
    right: str
    wrong: str
    scenario: str

    def __str__(self) -> str:
        return self.name


BREAKS = [
    Break(
        "a thief without the barrier between its marks and its looks",
        "front/theft.c",
        "    sure = sure && os_barrier_everywhere();\n",
        "",
        "theft",
    ),
    Break(
        "a thief without the barrier before its marks",
        "front/theft.c",
        "    bool sure = os_barrier_everywhere();\n",
        "    bool sure = true;\n",
        "theft",
    ),
    Break(
        "pop lowers the top last",
        "front/cache.h",
        """    STEP_DOWN(bin->top);
    void *topmost = load_own(&bin->topmost);
    FORGET_RESULT(topmost);
    *p = topmost;
    if (unlikely(topmost == window_mark())) {
        STEP_UP(bin->top);
        return false;
    }
    store_own(&bin->topmost, load_own(load_own(&bin->top)));
""",
        """    void *topmost = load_own(&bin->topmost);
    *p = topmost;
    if (unlikely(topmost == window_mark()))
        return false;
    store_own(&bin->topmost, load_own(load_own(&bin->top) - 1));
    STEP_DOWN(bin->top);
""",
        "theft",
    ),
    Break(
        "push raises the top before the slot is written",
        "front/cache.h",
        """    store_own(&top[1], p);
    store_own(&bin->topmost, p);
    STEP_UP(bin->top);
""",
        """    STEP_UP(bin->top);
    store_own(&top[1], p);
    store_own(&bin->topmost, p);
""",
        "fork",
    ),
    Break(
        "a waiter takes the lock as if nobody else slept",
        "os/lock.c",
        "        next = (state == 0 ? me : state) | LOCK_SLEEPERS;\n",
        "        next = state == 0 ? me : state | LOCK_SLEEPERS;\n",
        "lock",
    ),
    Break(
        "a wake forgets a late push",
        "front/stacks.c",
        "stack_used(bin, &cache->cold[stack]) > 0 ? bin->topmost : NULL",
        "NULL",
        "theft",
    ),
    Break(
        "a closer without its barrier, whose caches stay open",
        "front/closer.c",
        "            registry_exchange(cache, cache, &cache_none);\n",
        "            ;\n",
        "close",
    ),
]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    return Explorer(tmp_path_factory.mktemp("explore"))


@pytest.mark.parametrize("wrong", BREAKS, ids=str)
def test_found(explorer: Explorer, wrong: Break) -> None:
    text = (ROOT / "src" / wrong.file).read_text()
    assert text.count(wrong.right) == 1, f"src/{wrong.file} has changed: expected\n{wrong.right}"
    outcome = explorer.explore(wrong.file, text.replace(wrong.right, wrong.wrong), wrong.scenario)
    assert outcome.compiled, outcome.words
    assert outcome.wrong, f"expected that something goes wrong, came:\n{outcome.words}"
    assert "executions" in outcome.words, f"expected an end of its own, came:\n{outcome.words}"
    print(outcome.words.splitlines()[-1])
