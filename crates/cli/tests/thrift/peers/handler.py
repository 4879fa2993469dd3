"""What both servers do: echo values, but only if they came as they were meant.

What a method is called with is written down here again, so that bytes which are wrong and come back as wrong do not pass.
"""

import math
import os
import sys
import threading


def expected(everything, shared):
    """The value that each echoing method must be called with."""
    point = shared.Point(x=-3, y=7, name="ä")
    return {
        "echo_true": True,
        "echo_false": False,
        "echo_byte": -128,
        "echo_i16": -300,
        "echo_i32": 2147483647,
        "echo_i64": -9007199254740993,
        "echo_double": -1.5e300,
        "echo_string": "größer \U0001f980",
        "echo_binary": bytes([0, 255, 128, 10]),
        "echo_enum": 16,
        "echo_typedef": 1250,
        "echo_struct": point,
        "echo_tree": everything.Tree(name="a", children=[everything.Tree(name="b", children=[])]),
        "echo_union": everything.Either(point=shared.Point(x=1, y=2)),
        "echo_list": list(range(-10, 10)),
        "echo_bools": [True, False, True],
        "echo_path": [point, shared.Point(x=0, y=7)],
        "echo_set": {"a", "b", "c"},
        "echo_map": {"one": 1, "minus": -1},
        "echo_nested": {1: [{"t": True, "f": False}, {}], 16: []},
        "echo_empty": {},
        "echo_default": 42,
        "echo_whole": everything.Whole(
            yes=True,
            no=False,
            small=1,
            short=-2,
            middle=70000,
            large=1 << 40,
            real=0.1,
            text="",
            raw=b"\xff\xfe",
            colour=2,
            path=[point],
            either=everything.Either(text="t"),
            numbers={1, 2, 3},
            nested={"k": [{1: True}, {2: False}]},
            price=1250,
            far=9,
        ),
    }


def same(got, wanted):
    """Whether two values are equal, where one library has a set and the other a list or tuple."""
    if isinstance(wanted, set):
        return set(got) == wanted
    if isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(same(g, w) for g, w in zip(got, wanted))
    if isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(same(got[key], wanted[key]) for key in wanted)
    if hasattr(wanted, "__dict__"):
        return type(got) is type(wanted) and all(same(got.__dict__[k], v) for k, v in wanted.__dict__.items())
    if isinstance(wanted, float):
        return math.isclose(got, wanted, rel_tol=0)
    return type(got) is type(wanted) and got == wanted


class Handler:
    """The service, for either library."""

    def __init__(self, everything, shared):
        self.types = everything
        self.expected = expected(everything, shared)
        self.lock = threading.Lock()
        self.count = 0

    def __getattr__(self, name):
        if not name.startswith("echo_"):
            raise AttributeError(name)

        def echo(v):
            if not same(v, self.expected[name]):
                print(f"{name}: expected {self.expected[name]!r}, got {v!r}", file=sys.stderr, flush=True)
                raise ValueError(name)
            return v

        return echo

    def healthy(self):
        return True

    def nothing(self):
        pass

    def add(self, a, b, c):
        return a + b + c

    def refuse(self, busy):
        if busy:
            raise self.types.Busy(seconds=1)
        raise self.types.Refused(why="closed", code=3)

    def crash(self):
        raise RuntimeError("it broke")

    def bytes(self, length):
        return os.urandom(length)

    def tell(self, v):
        with self.lock:
            self.count += v

    def told(self):
        with self.lock:
            return self.count
