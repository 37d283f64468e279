"""The rules of naming that a machine can check: modules, classes, and constants with a unit."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from brimline.cli.commands import COMMANDS
from source_trees import parse_modules

# Participles and adverbs that named modules once; such a name does not say what a file holds.
NOT_A_NOUN = """
    about after afterwards again ahead alone anew apart around aside away before behind beside
    between beyond eager early elsewhere here inside late later near never now once outside quick
    quiet soon still then there together under within
    answered answering asked asking begun brought built called carried cleared closed configured
    done drafted drawn dropped ended fitting folding following found given gone heard hearing held
    kept known left looking lost made meant moved named opened opening packed painted passed picked
    played posted recorded rendered said saying seen sent served serviced spawned standing starting
    stored taken telling told tried typed wanted watched watching written
"""

UNITS = ("S", "MS", "NS", "BYTES", "CHARS", "BITS", "TOKENS", "PERCENT", "SHARE", "USD")
NO_UNIT = {
    "BYTES_PER_TOKEN",  # it names both units
    "DEMO_SPEED",  # a factor
    "GPT_TOKENS_PER_BYTE",
    "LIMIT_FACTOR",
    "MAX_DIFFERENCE",  # a ratio
    "MAX_FACTOR",
    "MAX_RATIO",
    "TOKENS_PER_BYTE",
}
SECONDS = ("_S", "_MS")
SECONDS_KEYWORDS = {"timeout", "wait_s", "timeout_s", "delay"}
WAITING_FUNCTIONS = {"sleep", "wait_for", "timeout", "call_later", "settimeout"}


def constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The constants of a module that are assigned one by one, and their values."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if name.isupper():
                    yield name, value
            case _:
                pass


def is_float(value: ast.expr) -> bool:
    """Whether an expression is a float, or a product with one: `30.0`, `24 * 3_600.0`."""
    if isinstance(value, ast.BinOp):
        return is_float(value.left) or is_float(value.right)
    return isinstance(value, ast.Constant) and type(value.value) is float


def waited_constants(tree: ast.Module) -> Iterator[str]:
    """The constants that a function gets as a number of seconds to wait."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            values = node.args[:2] if name in WAITING_FUNCTIONS else []
            values = [*values, *(k.value for k in node.keywords if k.arg in SECONDS_KEYWORDS)]
            yield from (each.id for each in values if isinstance(each, ast.Name))


def test_no_module_is_named_by_a_participle_or_an_adverb() -> None:
    """A command's module is named by the command."""
    words, commands = set(NOT_A_NOUN.split()), {f"cli/{name}.py" for name in COMMANDS}
    paths = parse_modules().keys() - commands
    names = {path: set(path.removesuffix(".py").split("/")) for path in paths}
    assert [path for path, parts in names.items() if parts & words] == []


def test_every_float_constant_has_its_unit_in_its_name() -> None:
    floats = [
        (path, name)
        for path, tree in parse_modules().items()
        for name, value in constants(tree)
        if is_float(value) and name not in NO_UNIT
    ]
    assert [each for each in floats if each[1].rpartition("_")[2] not in UNITS] == []


def test_every_constant_that_is_waited_for_is_in_seconds() -> None:
    waited = [
        (path, name)
        for path, tree in parse_modules().items()
        for name in waited_constants(tree)
        if name.isupper()
    ]
    assert waited, "the search for constants finds nothing any more"
    assert [each for each in waited if not each[1].endswith(SECONDS)] == []


def test_no_class_name_is_in_more_than_two_modules() -> None:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in parse_modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 2} == {}
