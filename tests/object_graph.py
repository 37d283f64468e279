"""Counts the objects that an object holds, for memory tests."""

import asyncio
import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

# Everything can be reached from these.
SKIPPED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, asyncio.Task)


def count_reachable(root: object, without: object = None) -> int:
    """The number of objects reachable from one, except through another."""
    seen = {id(without)}
    left, objects = [root], 0
    while left:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, SKIPPED):
            seen.add(id(each))
            objects += 1
            left += gc.get_referents(each)
    return objects
