"""Random kernels as source text: every construct of the language, put together without regard for sense.

What they do is defined under CPython: indices are kept inside arrays and divisors above zero, or guarded.
"""

from __future__ import annotations

import re
from random import Random

HEAD = '''"""A random kernel."""

from __future__ import annotations

from enum import Enum

import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.intrinsics import bitcast, count_ones, dynamic_range, leading_zeros, maximum, minimum, select
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, I32, I64, U8, U16, U32, U64, Bool


@attrs.frozen
class Pair:
    low: U32
    high: U64

    def swapped(self) -> Pair:
        return Pair(U32(self.high), U64(self.low))

    def __add__(self, other: Pair) -> Pair:
        return Pair(self.low + other.low, self.high ^ other.high)

    @property
    def mix(self) -> U32:
        return self.low ^ U32(self.high >> 7)


class Kind(Enum):
    X = 0
    Y = 1
    Z = 2


@attrs.frozen
class Nest:
    pair: Pair
    flag: Bool
    kind: Kind
    tiny: U8

    def turned(self, by: U32 = U32(3)) -> Nest:
        if self.flag:
            return Nest(self.pair.swapped(), self.kind == Kind.X, Kind.Z, U8(by))
        match self.kind:
            case Kind.X:
                return Nest(self.pair, Bool(True), Kind.Y, self.tiny)
            case Kind.Y | Kind.Z:
                if by > 7:
                    return self
        return Nest(self.pair + self.pair, self.flag, Kind.X, U8(U32(self.tiny) + by))


TABLE = (3, 1, 4, 1 << 31)
PAIRS = ((2, U32(5)), (3, U32((1 << 32) - 1)))


def sorted_pair(a: U32, b: Pair) -> tuple[U32, Pair]:
    if a < b.low:
        return a, b
    if a == b.low:
        for k in range(3):
            if b.high == U64(TABLE[k]):
                return a + k, b.swapped()
    return b.low, Pair(a, b.high)


'''
PARAMETERS = "cx: Invocation, data: Storage[U32], regs: Registers[U32], nests: Registers[Nest]"
INTEGERS = ("U32", "U64", "I32", "I64")
WORDS = (0, 1, 2, 3, 5, 7, 31, 32, 63, 255, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
FLOATS = ("0.0", "1.5", "-2.25", "1e10", "3.0", "0.1")
# What a value adds to a kernel's result.
RESULTS = {
    "U32": "{0}", "U64": "U32({0} >> 3)", "I32": "U32({0})", "F32": "bitcast(U32, {0})", "Bool": "U32({0})",
    "Pair": "{0}.mix", "Kind": "U32({0} == Kind.Y)", "I64": "U32(bitcast(U64, {0}) >> 5)",
    "Nest": "({0}.pair.mix ^ U32({0}.flag) ^ U32({0}.kind is Kind.Z) * 8 + U32({0}.tiny))",
}  # fmt: skip
RESULT_COUNT = 16

INTEGER_FORMS = (
    "(<of> + <of>)", "(<of> - <of>)", "(<of> * <of>)", "(<of> & <of>)", "(<of> | <of>)", "(<of> ^ <of>)", "(<of> + 3)",
    "(<of> * 100)", "(<of> << <U32>)", "(<of> >> <U32>)", "(<of> << <amount>)", "(<of> >> <amount>)", "(~<of>)",
    "minimum(<of>, <of>)", "maximum(<of>, <of>)",
)  # fmt: skip
FORMS = {
    "U32": (
        "data[<U32> % 4]", "regs[<U32> & 3]", "<Pair>.mix", "leading_zeros(<U64>)", "count_ones(<U32>)", "U32(<U64>)",
        "bitcast(U32, <I32>)", "U32(<Bool>)", "U32(<I32>)", "(<U32> // (<U32> | 1))", "(<U32> % (<U32> | 1))",
        "(7 - <U32>)", "U32(U8(<U32>))", "U32(U16(<U32>))", "U32(<Nest>.tiny)", "type(<U32>)(<U64>)",
        "U32(TABLE[<entry>])", "PAIRS[1][1]", "sorted_pair(<U32>, <Pair>)[0]",
    ),
    "U64": ("U64(<U32>)", "U64(<I32>)", "U64(<Bool>)", "<Pair>.high",
        "(<U64> // (<U64> | 1))", "(<U64> % (<U64> | 1))"),
    "I32": ("I32(<U32>)", "I32(<U64>)", "bitcast(I32, <U32>)", "(-<I32>)", "I32(<I64>)"),
    "I64": ("I64(<U32>)", "I64(<I32>)", "bitcast(I64, <U64>)", "(-<I64>)"),
    "F32": ("F32(<U32>)", "F32(<U64>)", "F32(<I32>)", "F32(<I64>)", "F32(<Bool>)", "(<F32> + <F32>)", "(<F32> - <F32>)",
        "(<F32> * <F32>)"),
    "Bool": (
        "(<U32> < <U32>)", "(<U64> >= <U64>)", "(<I32> > <I32>)", "(<F32> <= <F32>)", "(<U32> == <U32>)",
        "(<F32> != <F32>)",
        "Bool(<Kind> == <Kind>)", "Bool(<Bool> and <Bool>)", "Bool(<Bool> or <Bool>)", "(<Bool> & <Bool>)",
        "(<Bool> | <Bool>)", "(<Bool> ^ <Bool>)", "Bool(not <Bool>)", "(~<Bool>)", "<Nest>.flag",
    ),
    "Pair": ("<Pair>.swapped()", "(<Pair> + <Pair>)", "Pair(<U32>, <U64>)", "Pair(<U32>, <U64>)", "<Nest>.pair",
        "sorted_pair(<U32>, <Pair>)[1]"),
    "Kind": ("<Nest>.kind",),
    "Nest": ("<Nest>.turned()", "<Nest>.turned(<U32>)", "Nest(<Pair>, <Bool>, <Kind>, U8(<U32>))",
        "nests[<U32> & 1]"),
}  # fmt: skip

Names = dict[str, str]  # the variables that may be read here, with their types


class Writer:
    """Writes one kernel."""

    def __init__(self, choices: Random) -> None:
        self.choices = choices
        self.made = 0
        self.loops: list[str] = []  # the loops around here, "run" or "unrolled"
        self.result = ""  # what a function returns, by its type

    # -- expressions -----------------------------------------------------------------------------------

    def literal(self, of: str) -> str:
        pick = self.choices.choice
        match of:
            case "Bool":
                return f"Bool({pick((True, False))})"
            case "Kind":
                return f"Kind.{pick('XYZ')}"
            case "F32":
                return f"F32({pick(FLOATS)})"
            case "Pair":
                return f"Pair({self.literal('U32')}, {self.literal('U64')})"
            case "U64":
                return f"U64({pick((*WORDS, 1 << 63, (1 << 64) - 1, (1 << 40) + 3))})"
            case "Nest":
                return (
                    f"Nest({self.literal('Pair')}, {self.literal('Bool')}, {self.literal('Kind')}, U8({pick('059')}))"
                )
            case "I64":
                return f"I64({pick((0, 1, -1, 63, -(1 << 63), (1 << 63) - 1, (1 << 40) + 3))})"
            case "I32":
                return f"I32({pick((0, 1, -1, 31, 65535, -(1 << 31), (1 << 31) - 1))})"
            case _:
                return f"U32({pick(WORDS)})"

    def leaf(self, of: str, names: Names) -> str:
        known = [name for name, type in names.items() if type == of]
        more = ["cx.local_id", "data[cx.local_id]", "data.length"] if of == "U32" else []
        return self.choices.choice([self.literal(of), *more, *known * 3])

    def expression(self, of: str, names: Names, depth: int) -> str:
        """One of FORMS, each type in it replaced by an expression of that type."""
        if depth <= 0 or self.choices.random() < 0.15:
            return self.leaf(of, names)
        if of == "Bool" and self.choices.random() < 0.15:
            return f"Bool({self.guarded(names, depth - 1)})"
        forms = [
            *FORMS[of],
            *(INTEGER_FORMS if of in INTEGERS else ()),
            "(<of> if <Bool> else <of>)",
            "select(<Bool>, <of>, <of>)",
        ]
        form = self.choices.choice(forms)

        def fill(place: re.Match[str]) -> str:
            match place[1]:
                case "of":
                    return self.expression(of, names, depth - 1)
                case "amount":
                    return str(self.choices.randrange(70))
                case "entry":
                    return str(self.choices.randrange(-4, 4))
                case other:
                    return self.expression(other, names, depth - 1)

        return re.sub(r"<(\w+)>", fill, form)

    def guarded(self, names: Names, depth: int) -> str:
        """A condition whose right side may only be computed where the left allows it."""
        x = self.choices.choice([name for name, type in names.items() if type == "U32"] or ["cx.local_id"])
        y = self.expression("U32", names, depth)
        forms = (f"{x} < 4 and data[{x}] > {y}", f"{x} != 0 and {y} // {x} > 3", f"{x} >= 4 or data[{x}] == {y}")
        return self.choices.choice(forms)

    # -- statements ------------------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def block(self, names: Names, depth: int, indent: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.choices.randrange(1, 5)):
            lines += self.statement(names, depth)
        return ["    " * indent + line for line in lines or ["pass"]]

    def inner(self, names: Names, depth: int, loop: str = "") -> list[str]:
        """A block in a branch or loop: the names that it makes end with it."""
        outer, self.loops = self.loops, [*self.loops, loop] if loop else self.loops
        lines = self.block(dict(names), depth - 1, 1)
        self.loops = outer
        return lines

    def assignable(self, names: Names, of: str) -> list[str]:
        return [name for name, type in names.items() if type == of and name.startswith("v")]

    def statement(self, names: Names, depth: int) -> list[str]:
        kinds = ["assign"] * 4 + ["update", "swap", "registers", "unpack", "chain"]
        kinds += ["if", "if", "for", "while", "unrolled", "table", "match"] if depth > 0 else []
        if self.loops:
            kinds += ["jump"] * 2
        elif self.result:
            kinds += ["return"]
        condition = self.expression("Bool", names, 2)
        words = self.assignable(names, "U32")
        match self.choices.choice(kinds):
            case "update" if words:
                operator = self.choices.choice(("+=", "-=", "^=", "*=", "|="))
                return [f"{self.choices.choice(words)} {operator} {self.expression('U32', names, 2)}"]
            case "swap" if len(words) > 1:
                a, b = self.choices.sample(words, 2)
                return [f"{a}, {b} = {b}, {a}"]
            case "unpack":
                first, second = self.name("v"), self.name("v")
                value = f"sorted_pair({self.expression('U32', names, 2)}, {self.expression('Pair', names, 1)})"
                names |= {first: "U32", second: "Pair"}
                return [f"{first}, {second} = {value}"]
            case "chain":
                target, of = self.name("v"), self.choices.choice(("U32", "Nest"))
                place = f"regs[{self.expression('U32', names, 1)} & 3]" if of == "U32" else f"nests[{len(names) & 1}]"
                value = self.expression(of, names, 2)
                names[target] = of
                return [
                    f"{target} = {place} = {value}" if self.choices.random() < 0.5 else f"{place} = {target} = {value}"
                ]
            case "table":
                times, value = self.name("k"), self.name("w")
                body = self.inner({**names, value: "U32"}, depth, "unrolled")
                return [f"for {times}, {value} in PAIRS:", *body, f"    regs[1] = regs[1] + {value} * {times}"]
            case "registers":
                index, value = self.expression("U32", names, 1), self.expression("U32", names, 2)
                return [f"regs[{index} & 3] {self.choices.choice(('=', '+=', '^='))} {value}"]
            case "if":
                otherwise = ["else:", *self.inner(names, depth)] if self.choices.random() < 0.5 else []
                return [f"if {condition}:", *self.inner(names, depth), *otherwise]
            case "for":
                counter, stop = self.name("i"), self.choices.choice(("U32(4)", "data[0] % 5", "cx.local_id"))
                head = f"for {counter} in dynamic_range(U32({self.choices.randrange(2)}), {stop}):"
                ends = ["    break"] if self.choices.random() < 0.1 else []
                return [head, *self.inner({**names, counter: "U32"}, depth, "run"), *ends]
            case "while":
                counter, more = self.name("w"), f" and {condition}" if self.choices.random() < 0.5 else ""
                head = f"while {counter} < {self.choices.randrange(1, 4)}{more}:"
                return [f"{counter} = U32(0)", head, f"    {counter} += 1", *self.inner(names, depth, "run")]
            case "unrolled":
                counter = self.name("k")
                head = f"for {counter} in range({self.choices.randrange(1, 4)}):"
                return [head, *self.inner(names, depth, "unrolled"), f"    regs[0] = regs[0] + {counter}"]
            case "match":
                kinds_known = [name for name, type in names.items() if type == "Kind"] or ["Kind.Y"]
                cases = self.choices.choice((("Kind.X", "Kind.Y | Kind.Z"), ("Kind.X", "Kind.Z", "_")))
                lines = [f"match {self.choices.choice(kinds_known)}:"]
                for case in cases:
                    lines += [f"    case {case}:", *("    " + line for line in self.inner(names, depth))]
                return lines
            case "jump":
                jump = self.choices.choice(("break", "continue")) if self.loops[-1] == "run" else "continue"
                return [f"if {condition}:", *self.inner(names, 0), f"    {jump}"]
            case "return":
                value = f"return {self.expression(self.result, names, 2)}" if self.result != "None" else "return"
                return [f"if {condition}:", *self.inner(names, 0), f"    {value}"]
            case _:
                of = self.choices.choice(("U32", "U32", "U64", "I32", "F32", "Bool", "Pair", "Kind", "I64", "Nest"))
                value, known = self.expression(of, names, 3), self.assignable(names, of)
                name = self.choices.choice(known) if known and self.choices.random() < 0.6 else self.name("v")
                names[name] = of
                return [f"{name} = {value}"]

    # -- functions -------------------------------------------------------------------------------------

    def helper(self, name: str) -> list[str]:
        self.result = "U32"
        names = {"vx": "U32", "vy": "U32"}
        body = self.block(names, 2, 1)
        last = f"    return {self.expression('U32', names, 2)}"
        return ["", f"def {name}({PARAMETERS}, vx: U32, vy: U32) -> U32:", *body, last, ""]

    def module(self) -> str:
        helpers = [f"helper_{i}" for i in range(self.choices.randrange(3))]
        lines = [line for helper in helpers for line in self.helper(helper)]
        self.result = "None"
        names = {"number": "U32"}
        body = [line for _ in range(2) for line in self.block(names, 3, 1)]
        values = [RESULTS[type].format(name) for name, type in names.items()]
        values += [f"{helper}(cx, data, regs, nests, number, cx.local_id)" for helper in helpers]
        values = [*values[: RESULT_COUNT - 1], "regs[0] ^ regs[1] * 3 ^ regs[2] * 5 ^ regs[3] * 7"]
        signature = "cx: Invocation, data: Storage[U32], out: Storage[U32], number: U32"
        lines += ["", "@kernel", f"def subject({signature}) -> None:", "    regs: Registers[U32] = Registers(U32, 4)"]
        lines += ["    nests: Registers[Nest] = Registers(Nest, 2)"]
        lines += ["    for z in range(4):", "        regs[z] = data[z]"]
        lines += [
            "    for z in range(2):",
            "        nests[z] = Nest(Pair(data[z], U64(z)), Bool(z == 0), Kind.Y, U8(z))",
            *body,
        ]
        lines += [f"    out[cx.local_id * {RESULT_COUNT} + {i}] = {value}" for i, value in enumerate(values)]
        return HEAD + "\n".join(lines) + "\n"
