"""A memory plan, as `memwall run --plan-out` writes it: what of it a program executes (`realization` in
traces/plan/FORMAT.md), and what is expected of it."""

import dataclasses
import gzip
import json
import os
import zlib

from .errors import ApplyError

FORMAT, VERSION = "memwall-plan", 1
LARGEST = 1 << 60  # bytes: what a trace may have
MOST_FORWARDS = 65536
EXPECTED = {"fits": bool, "peak_requested_bytes": int, "peak_reserved_bytes": int, "step_time_s": float, "recomputed_ops": int,
            "recompute_time_s": float}
OPTIMIZER = {"place": str, "through": str, "implementation": str, "pinned": bool, "side_streams": bool, "buffers": int}


@dataclasses.dataclass(frozen=True)
class Units:
    """Modules whose forward is run again in backward; each of `units` is a list of modules in a row, re-run as one."""
    units: list
    early_stop: bool
    preserve_rng: bool
    save_ops: frozenset  # operators whose results in the units are kept: selective checkpointing


@dataclasses.dataclass(frozen=True)
class LazyOps:
    """Single operators that are run again in this order when backward first needs what they made."""
    ops: list  # (module, operator, calls in one forward or None for all, numbers of results that stay)
    preserve_rng: bool


@dataclasses.dataclass(frozen=True)
class Move:
    """One storage that is on the host between forward and backward. Numbers: of storages in the order in which autograd
    saves them, those of at least `Offload.count_min_bytes`."""
    number: int
    bytes: int
    maker: tuple  # (module, operator, call): for messages
    give_back: int  # device memory is given up right after this storage is saved; -1: at the end of forward
    fetch: int  # it comes back where backward first asks for this one; -1: where backward begins


@dataclasses.dataclass(frozen=True)
class Offload:
    pinned: bool
    side_streams: bool
    count_min_bytes: int
    moves: list
    fetch_order: list


@dataclasses.dataclass(frozen=True)
class Plan:
    path: str
    made_by: str
    forwards: int  # forward passes with a backward in a step; what follows is of each
    recompute: list
    lazy_ops: list
    offload: Offload  # None: nothing travels
    optimizer: dict  # None: it stays where it is
    parameters: dict  # name: bytes; None: not known
    runs_again: list  # of (unit or lazy group, [(module, operator)]); None: not known
    expected: dict  # None: not known

    @property
    def units(self):
        return [(unit, group) for group in self.recompute for unit in group.units]


class _Reader:
    """Members of a JSON document; what is missing or of another kind is an error that names the place."""

    def __init__(self, path):
        self.path = path

    def fail(self, place, found, expected):
        raise ApplyError(f"{self.path}: {place}: found {found}; expected {expected}.")

    def get(self, owner, key, kind, place, default=None):
        value = owner.get(key, default)
        if value is None and default is None and key not in owner:
            self.fail(f"{place}.{key}", "nothing", _name(kind))
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            self.fail(f"{place}.{key}", json.dumps(value)[:80], _name(kind))
        return value

    def number(self, owner, key, place, least=0, most=LARGEST, default=None):
        value = self.get(owner, key, int, place, default)
        if not least <= value <= most:
            self.fail(f"{place}.{key}", json.dumps(value)[:80], f"a whole number from {least} to {most}")
        return value

    def members(self, owner, kinds, place):
        """Of those of `kinds` that are there, each is of its kind, and no number below 0."""
        for key in kinds:
            if key in owner and kinds[key] is int:
                self.number(owner, key, place)
            elif key in owner:
                self.get(owner, key, (int, float) if kinds[key] is float else kinds[key], place)
        return owner

    def numbers(self, values, place):
        if not isinstance(values, list) or not all(type(value) is int and 0 <= value <= LARGEST for value in values):
            self.fail(place, json.dumps(values)[:80], "a list of whole numbers")
        return values

    def objects(self, owner, key, place, default=None):
        found = self.get(owner, key, list, place, default)
        for i, value in enumerate(found):
            if not isinstance(value, dict):
                self.fail(f"{place}.{key}[{i}]", json.dumps(value)[:80], "an object")
        return found

    def words(self, values, place):
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self.fail(place, json.dumps(values)[:80], "a list of words")
        return values


def _name(kind):
    return {int: "a whole number", (int, float): "a number", str: "a word", bool: "true or false", list: "a list", dict: "an object"}[kind]


def load(path):
    """The plan in a file. Raises ApplyError where it cannot be read, or holds decisions that no program can name."""
    path = os.fspath(path)
    document = _document(path)
    read = _Reader(path)
    if document.get("format") != FORMAT:
        read.fail("format", json.dumps(document.get("format")), f'"{FORMAT}" (as `memwall run --plan-out` writes it)')
    if document.get("version") != VERSION:
        read.fail("version", json.dumps(document.get("version")), str(VERSION))
    if "realization" not in document:
        raise ApplyError(f"{path}: the plan has no member 'realization', so that its decisions have no names; expected one, as "
                         "`memwall run --plan-out` writes it.")
    realization = read.get(document, "realization", dict, "the plan")
    _require_names(path, read.objects(realization, "unnamed", "realization", []))
    place = "realization"
    recompute = [_units(read, one, f"{place}.recompute[{i}]")
                 for i, one in enumerate(read.objects(realization, "recompute", place, []))]
    lazy = [_lazy(read, one, f"{place}.lazy_ops[{i}]")
            for i, one in enumerate(read.objects(realization, "lazy_ops", place, []))]
    return Plan(
        path, read.get(document, "made_by", str, "the plan", "?"),
        read.number(realization, "forwards", place, most=MOST_FORWARDS), recompute, lazy,
        _offload(read, document, read.objects(realization, "offload", place, [])),
        _optimizer(read, realization), _parameters(read, realization),
        _runs_again(read, realization, sum(len(group.units) for group in recompute), len(lazy)),
        read.members(read.get(document, "expected", dict, "the plan"), EXPECTED, "expected") if "expected" in document else None)


def _document(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        document = json.loads(data)
    except OSError as e:
        raise ApplyError(f"{path}: cannot be read: {e.strerror or e}.") from e
    except (ValueError, EOFError, RecursionError, zlib.error) as e:
        raise ApplyError(f"{path}: found what is no JSON ({e}); expected a plan as `memwall run --plan-out` writes it.") from e
    if not isinstance(document, dict):
        raise ApplyError(f"{path}: found a JSON {type(document).__name__}; expected an object, a memory plan.")
    return document


def _require_names(path, unnamed):
    if not unnamed:
        return
    reasons = "; ".join(f"{one.get('what')}: {one.get('reason', '?')} ({one.get('storages', 0)} storages, "
                        f"{one.get('bytes', 0)} bytes)" for one in unnamed)
    raise ApplyError(f"{path}: the plan has decisions that no program can name: {reasons} Make it with `memwall run ... "
                     "--plan-out FILE --executable=torch`, which keeps to what PyTorch can do.")


def _units(read, one, place):
    units = [read.words(unit, f"{place}.units[{i}]") for i, unit in enumerate(read.get(one, "units", list, place))]
    return Units(units, read.get(one, "early_stop", bool, place), read.get(one, "preserve_rng", bool, place),
                 frozenset(read.words(one.get("save_ops", []), f"{place}.save_ops")))


def _lazy(read, one, place):
    ops = []
    for i, op in enumerate(read.objects(one, "ops", place)):
        here = f"{place}.ops[{i}]"
        calls = op.get("calls")
        if calls is not None:
            calls = frozenset(read.numbers(calls, f"{here}.calls"))
        keeps = frozenset(read.numbers(op.get("keeps", []), f"{here}.keeps"))
        ops.append((read.get(op, "module", str, here), read.get(op, "op", str, here), calls, keeps))
    return LazyOps(ops, read.get(one, "preserve_rng", bool, place))


def _offload(read, document, parts):
    if not parts:
        return None
    place = "realization.offload[0]"
    one = parts[0]
    if len(parts) > 1 or one.get("tier") != "host" or one.get("through", ""):
        tiers = ", ".join(f"{p.get('tier')}" + (f" through {p['through']}" if p.get("through") else "") for p in parts)
        raise ApplyError(f"{read.path}: activations travel to {tiers}; PyTorch's hooks send them to host memory only "
                         "(tier 'host'). Other tiers are not implemented.")
    if "moves" not in one:
        raise ApplyError(f"{read.path}: {place} has no member 'moves': where the capture does not say what autograd saves, or "
                         "the plan is of an older memwall, nothing says when each storage leaves and comes back. Capture the "
                         "step with memwall_capture and plan it with --executable=torch.")
    moves = [_move(read, move, f"{place}.moves[{i}]") for i, move in enumerate(read.objects(one, "moves", place))]
    numbers = sorted(move.number for move in moves)
    twice = next((a for a, b in zip(numbers, numbers[1:]) if a == b), None)
    if twice is not None:
        read.fail(f"{place}.moves", f"number {twice} twice", "each storage to travel once")
    order = read.numbers(read.get(one, "fetch_order", list, place), f"{place}.fetch_order")
    if sorted(order) != numbers:
        read.fail(f"{place}.fetch_order", f"{len(order)} numbers", f"those of the {len(moves)} moves, once each")
    return Offload(read.get(one, "pinned", bool, place, True), read.get(one, "side_streams", bool, place, True),
                   read.number(one, "count_min_bytes", place), moves, order)


def _move(read, move, place):
    number, give_back = read.number(move, "number", place), read.number(move, "give_back", place, least=-1)
    if -1 < give_back < number:
        read.fail(f"{place}.give_back", str(give_back), f"-1, or {number} or more: what is saved later, or with it")
    maker = (read.get(move, "module", str, place, ""), read.get(move, "op", str, place, "?"),
             read.number(move, "call", place, default=0))
    return Move(number, read.number(move, "bytes", place), maker, give_back, read.number(move, "fetch", place, least=-1))


def _optimizer(read, realization):
    for home in read.objects(realization, "homes", "realization", []):
        if home.get("kind") != "optimizer_state":
            raise ApplyError(f"{read.path}: the plan keeps {home.get('kind')}s in tier '{home.get('tier')}'; in PyTorch "
                             "memwall_apply moves activations and optimizer states only. Not implemented.")
    if "optimizer" not in realization:
        return None
    return read.members(read.get(realization, "optimizer", dict, "realization"), OPTIMIZER, "realization.optimizer")


def _parameters(read, realization):
    if "model" not in realization:
        return None
    model = read.get(realization, "model", dict, "realization")
    found = {}
    for i, pair in enumerate(read.get(model, "parameters", list, "realization.model")):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
                and type(pair[1]) is int and 0 <= pair[1] <= LARGEST):
            read.fail(f"realization.model.parameters[{i}]", json.dumps(pair)[:80], "[name, bytes]")
        found[pair[0]] = pair[1]
    return found


def _runs_again(read, realization, units, groups):
    """`units`, `groups`: how many of them the plan has."""
    if "runs_again" not in realization:
        return None
    found = []
    for i, one in enumerate(read.objects(realization, "runs_again", "realization")):
        place = f"realization.runs_again[{i}]"
        ops = [tuple(read.words(op, f"{place}.ops[{j}]")) for j, op in enumerate(read.get(one, "ops", list, place))]
        for j, op in enumerate(ops):
            if len(op) != 2:
                read.fail(f"{place}.ops[{j}]", json.dumps(op)[:80], "[module, operator]")
        unit, lazy = (read.number(one, key, place, most=count - 1) if key in one else None
                      for key, count in (("unit", units), ("lazy", groups)))
        found.append((unit, lazy, ops))
    return found
