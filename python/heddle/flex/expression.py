"""Expressions of a score or a mask: what a function of FlexAttention computes for one pair of a query and a
key."""

from dataclasses import dataclass

from heddle.errors import Unsupported

INDICES = ("b", "h", "q", "kv")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or", "xor", "not")
OF_FLOATS = ("exp", "tanh", "sigmoid", "sqrt", "truediv", "float")  # their results are floats


@dataclass(frozen=True)
class Node:
    """A value of an expression. `kind`: "bool", "int" or "float". Leaves are "score", the INDICES, and
    "const", whose `data` is its number. "load" reads the captured tensor of the number `data` at its
    arguments."""

    op: str
    args: tuple = ()
    data: object = None
    kind: str = "float"


def const(value):
    if isinstance(value, bool):
        return Node("const", (), value, "bool")
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise Unsupported(f"the whole number {value} has more than 32 bits")
        return Node("const", (), value, "int")
    return Node("const", (), float(value), "float")


SCORE = Node("score")
PLACE = {name: Node(name, (), None, "int") for name in INDICES}
APART = Node("apart")  # query - key, as a float
TRUE, FALSE, ZERO, ONE = const(True), const(False), const(0.0), const(1.0)


def make(op, *args):
    """The node of an operation; what constants decide is decided."""
    return _simpler(op, args) or Node(op, args, None, _kind(op, args))


def _kind(op, args):
    if op in COMPARISONS or op in LOGIC:
        return "bool"
    if op in OF_FLOATS:
        return "float"
    values = args[1:] if op == "where" else args
    return max((each.kind for each in values), key=("bool", "int", "float").index)


def _simpler(op, args):
    a, b = args[0], args[-1]
    if op == "add":
        return b if _is_zero(a, b) else a if _is_zero(b, a) else None
    if op == "sub" and _is_zero(b, a):
        return a
    if op == "mul":
        if a == ZERO or b == ZERO:  # derivatives have them
            return ZERO
        return b if a == ONE and b.kind == "float" else a if b == ONE and a.kind == "float" else None
    if op == "and":
        return b if a == TRUE else a if b == TRUE else FALSE if FALSE in (a, b) else None
    if op == "or":
        return b if a == FALSE else a if b == FALSE else TRUE if TRUE in (a, b) else None
    if op == "ge" and a.op in INDICES and b == const(0):  # so transformers masks nothing
        return TRUE
    if op == "where" and args[1] == args[2]:
        return b
    return None


def _is_zero(value, other):
    return value.op == "const" and value.data == 0 and (value.kind == other.kind or other.kind == "float")


def as_float(node):
    """A whole number as a float. Sums of indices are sums of floats, which are exact below 2^24."""
    if node.kind == "float":
        return node
    if node.op == "const":
        return const(float(node.data))
    if node.op in ("q", "kv"):
        return Node(f"{node.op}_number")
    line = _linear(node)
    if line and _is_distance(line):
        apart = APART if line[0] == 1 else make("neg", APART)
        return make("add", apart, const(float(line[2])))
    if node.op in ("add", "sub", "neg", "abs", "min", "max") and all(
        each.kind == "int" for each in node.args
    ):
        return make(node.op, *map(as_float, node.args))
    return Node("float", (node,))


def slope_of(root, by=SCORE):
    """The derivative of a value by the score, or by a read of a captured tensor."""
    known = {by: ONE}
    for node in in_order(root):
        if node not in known:
            known[node] = _slope(node, known.__getitem__)
    return known[root]


def _slope(node, of):
    if node.kind != "float" or not node.args or node.op == "load":
        return ZERO
    slopes = [of(each) for each in node.args]
    if all(each == ZERO for each in slopes):
        return ZERO
    return SLOPES[node.op](node, *node.args, *slopes)


SLOPES = {
    "add": lambda y, a, b, da, db: make("add", da, db),
    "sub": lambda y, a, b, da, db: make("sub", da, db),
    "mul": lambda y, a, b, da, db: make("add", make("mul", da, b), make("mul", a, db)),
    "truediv": lambda y, a, b, da, db: make("truediv", make("sub", da, make("mul", y, db)), b),
    "neg": lambda y, a, da: make("neg", da),
    "abs": lambda y, a, da: make("mul", da, make("where", make("lt", a, ZERO), const(-1.0), ONE)),
    "min": lambda y, a, b, da, db: make("where", make("lt", b, a), db, da),
    "max": lambda y, a, b, da, db: make("where", make("lt", a, b), db, da),
    "where": lambda y, c, a, b, dc, da, db: make("where", c, da, db),
    "exp": lambda y, a, da: make("mul", y, da),
    "tanh": lambda y, a, da: make("mul", da, make("sub", ONE, make("mul", y, y))),
    "sigmoid": lambda y, a, da: make("mul", da, make("mul", y, make("sub", ONE, y))),
    "sqrt": lambda y, a, da: make("truediv", make("mul", da, const(0.5)), y),
}


def in_order(*roots):
    """All nodes of expressions, arguments first, each once."""
    found = {}

    def visit(node):
        if node not in found:
            for each in node.args:
                visit(each)
            found[node] = None

    for each in roots:
        visit(each)
    return tuple(found)


def uses(node, op):
    return any(each.op == op for each in in_order(node))


@dataclass(frozen=True)
class Band:
    """Keys around a query's own number that it sees: from `left` before to `right` after; None: all. Either
    may be negative."""

    left: int | None = None
    right: int | None = None

    def narrowed(self, left, right):
        both = ((self.left, left), (self.right, right))
        return Band(*(a if b is None else b if a is None else min(a, b) for a, b in both))

    def arguments(self, queries, keys):
        """Arguments of flash_attention, in which queries stand so much later that no side is negative."""
        left, right = self.left, self.right
        if left is not None and right is not None and left + right < 0:  # no key: they stand after all
            return {"q_offset": 2**30, "window_left": 0}
        later = -left if left is not None and left < 0 else min(right or 0, 0)
        made = {"q_offset": queries - keys + later}
        if left is not None:
            made["window_left"] = min(left + later, 2**31 - 1)
        if right is not None:
            made["window_right"] = min(right - later, 2**31 - 1)
        return made

    def keys_of(self, begin, end, keys):
        """The first key that any of the queries [begin, end) sees, and the one after the last."""
        low = 0 if self.left is None else max(0, begin - self.left)
        return low, keys if self.right is None else min(keys, end + self.right)


def axes_of(node):
    """The indices that a value depends on: of INDICES, and "distance" where it is how far apart query and key
    are, and no other number of theirs, that counts."""
    if node.op in ("q_number", "kv_number"):
        return {node.op.removesuffix("_number")}
    line = (1, -1, 0) if node == APART else _linear(node)
    if node.op in INDICES or (line and _is_distance(line)):
        return {node.op if node.op in INDICES else "distance"}
    found = set().union(*map(axes_of, node.args))
    if {"q", "kv"} & found and "distance" in found:
        return found - {"distance"} | {"q", "kv"}
    return found


def split_band(mask):
    """Cuts a mask into a band and what is left of it."""
    band, rest = Band(), TRUE
    for part in _terms(mask):
        found = _band_of(part)
        if found is None:
            rest = make("and", rest, part)
        else:
            band = band.narrowed(*found)
    return band, rest


def _terms(mask):
    if mask.op == "and":
        return [each for side in mask.args for each in _terms(side)]
    return [] if mask == TRUE else [mask]


def _band_of(part):
    """(left, right) of a comparison that says how far a key may be from its query; None: it is none."""
    if part.op not in ("lt", "le", "gt", "ge"):
        return None
    a, b = part.args if part.op in ("lt", "le") else part.args[::-1]
    strict = part.op in ("lt", "gt")
    if a.op == "abs" and b.op == "const" and b.kind == "int":
        line, apart = _linear(a.args[0]), b.data - strict
        if line is None or not _is_distance(line):
            return None
        return apart - line[0] * line[2], apart + line[0] * line[2]
    left, right = _linear(a), _linear(b)
    if left is None or right is None:
        return None
    q, kv, c = (x - y for x, y in zip(left, right, strict=True))
    apart = -(c + strict)  # q (query - key) is at most so large
    if not _is_distance((q, kv, c)):
        return None
    return (apart, None) if q == 1 else (None, apart)


def _is_distance(line):
    """True for a distance of query and key, and a constant."""
    return abs(line[0]) == 1 and line[1] == -line[0]


def _linear(node):
    """(q, kv, c) of q * query + kv * key + c in whole numbers; None: it is no such sum."""
    if node.op in ("q", "kv"):
        return (1, 0, 0) if node.op == "q" else (0, 1, 0)
    if node.op == "const" and node.kind == "int":
        return (0, 0, node.data)
    if node.op in ("add", "sub", "neg"):
        sides = [_linear(each) for each in node.args]
        if None in sides:
            return None
        signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,)}[node.op]
        return tuple(sum(sign * side[i] for sign, side in zip(signs, sides, strict=True)) for i in range(3))
    return None
