# mypy: ignore-errors
"""Allocates a block of another size in each place, in all ways in which Python calls functions.

The size of each is a literal, so test_python.py finds its function and line in this source. The
argument is how often, and in how many threads beside the first one.

A Python without the GIL has its objects in a heap of its own, so there each is a block of malloc.
"""

import asyncio
import ctypes
import functools
import sys
import sysconfig
import threading

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    bytearray, len = ctypes.CDLL(None).malloc, int


class Service:
    def __init__(self):
        self.block = bytearray(20001)

    def method(self):
        return bytearray(20103)

    @property
    def value(self):
        return bytearray(20205)

    @staticmethod
    def static():
        return bytearray(20307)

    def __getitem__(self, key):
        return bytearray(20409)

    def __del__(self):
        bytearray(20511)


def generator():
    for _ in range(3):
        yield bytearray(20715)


def delegates():
    yield bytearray(20817)
    yield from generator()


def raises():
    try:
        bytearray(20919)
        raise KeyError(1)
    except KeyError:
        bytearray(21021)
        raise ValueError from None
    finally:
        bytearray(21123)


def catches():
    try:
        raises()
    except ValueError:
        return bytearray(21225)


async def leaf():
    bytearray(21327)
    await asyncio.sleep(0)
    bytearray(21429)


async def branch():
    await asyncio.gather(leaf(), leaf())
    async for _ in counts():
        bytearray(21531)


async def counts():
    for _ in range(2):
        yield bytearray(21633)
        await asyncio.sleep(0)


def key(one):
    bytearray(21735)
    return -one


def through_c():
    sorted(range(3), key=key)
    list(filter(lambda one: bytearray(21837), range(2)))
    functools.reduce(lambda a, b: bytearray(21939), range(3))
    tuple(bytearray(22041) for _ in range(2))


def recursion(n):
    return recursion(n - 1) if n else bytearray(22143)


def closure():
    n = 0

    def inner():
        nonlocal n
        n += 1
        return bytearray(22245)

    return inner()


def größe():
    return bytearray(22347)


def 大きさ():
    return bytearray(22449)


exec(compile("def made():\n\n return bytearray(22551)\n", "a b:c\n\udc80é.py", "exec"))


def long_lines():
    # fmt: off
    return (1 +
            len(bytearray(22653)) +

            len(
                bytearray(22755)))
    # fmt: on


def work():
    service = Service()
    service.method(), service.value, Service.static(), service[1]
    del service
    list(delegates())
    catches()
    through_c()
    recursion(90)
    closure()
    größe()
    大きさ()
    made()  # noqa: F821
    long_lines()
    asyncio.run(branch())


def run(rounds, threads):
    for _ in range(rounds):
        others = [threading.Thread(target=work) for _ in range(threads)]
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()


run(int(sys.argv[1]), int(sys.argv[2]))
