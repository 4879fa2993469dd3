#!/usr/bin/env python3
"""Says in which sections two programs differ, by how many bytes, and where first: differs.py ONE OTHER"""

import re
import subprocess
import sys
from itertools import compress, count


def sections(program):
    """The sections of a program that stand in its file, by name."""
    table = subprocess.run(
        ["readelf", "--sections", "--wide", program], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
    ).stdout
    bytes_of = open(program, "rb").read()
    row = re.compile(r"\[ *\d+\] (\.\S+) +(\S+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) ")
    found = {}
    for name, kind, offset, size in row.findall(table):
        if kind != "NOBITS":
            found[name] = bytes_of[int(offset, 16) : int(offset, 16) + int(size, 16)]
    return found


def described(one, other):
    """How two contents of a section differ."""
    if len(one) != len(other):
        return f"{len(one)} and {len(other)} bytes"
    differ = list(compress(count(), map(int.__ne__, one, other)))
    same = "; the same bytes in another order" if sorted(one) == sorted(other) else ""
    return f"{len(differ)} of {len(one)} bytes, between {differ[0]:#x} and {differ[-1]:#x}{same}"


one, other = (sections(program) for program in sys.argv[1:])
for name in sorted(one.keys() | other.keys()):
    if one.get(name) != other.get(name):
        print(f"  {name}: {described(one.get(name, b''), other.get(name, b''))}")
