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
        "a release that loads the word, and then stores it",
        "os/lock.h",
        "    if (unlikely(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) &"
        " LOCK_SLEEPERS))\n",
        """    size_t held = __atomic_load_n(&lock->state, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->state, 0, __ATOMIC_RELEASE);
    if (unlikely(held & LOCK_SLEEPERS))
""",
        "lock",
    ),
    Break(
        "a closer that leaves the caches open",
        "front/cache.c",
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
