"""Threads that use the same types for the first time at the same moment do not crash."""

import re

import msgspec
import pytest

from comments.domain import decoders
from tests.conftest import ROOT
from tests.support import forked_programs

FIRST_USES = """
import sys, threading
import msgspec
from comments.domain import decoders

def struct(name, **fields):
    return type(name, (msgspec.Struct,), {"__annotations__": fields})

def pair(number):
    inner = struct(f"Inner{number}", a=int, b=str, c=list[int])
    return inner, struct(f"Outer{number}", a=inner, b=str, c=list[inner])

def use():
    gate.wait()
    for inner, outer in pairs:
        decoders.json(outer).decode('{"a": {"a": 1, "b": "x", "c": []}, "b": "y", "c": []}')
        decoders.convert({"a": 1, "b": "x", "c": []}, inner)
        decoders.msgpack(list[inner]).decode(msgspec.msgpack.encode([]))

sys.setswitchinterval(1e-6)
pairs = [pair(number) for number in range(200)]
gate = threading.Barrier(20)
threads = [threading.Thread(target=use) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("all")
"""
OWN_DESCRIPTIONS = re.compile(r"msgspec\.(json|msgpack)\.(decode|Decoder)\(|msgspec\.convert\(")


@pytest.mark.slow
def test_first_uses_of_types_by_many_threads_do_not_crash_the_process() -> None:
    assert forked_programs.run(FIRST_USES) == (0, "all\n")


def test_only_this_module_asks_for_descriptions_of_types() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("comments", "datastore_emulator", "server")
        for path in (ROOT / folder).rglob("*.py")
        if OWN_DESCRIPTIONS.search(path.read_text())
    ]
    assert found == ["comments/domain/decoders.py"]


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        decoders.convert("1", int)
