"""A memory plan, as `memwall run --plan-out` writes it: what of it a program executes (`realization` in
traces/plan/FORMAT.md), and what is expected of it."""

import dataclasses
import gzip
import json
import os
import zlib

from .errors import ApplyError

FORMAT, VERSION = "memwall-plan", 1


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
    ops: list  # (module, operator, calls in one forward or None for all)
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
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(f"{place}.{key}", json.dumps(value)[:80], _name(kind))
        return value

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
    return {int: "a whole number", str: "a word", bool: "true or false", list: "a list", dict: "an object"}[kind]


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
        path, read.get(document, "made_by", str, "the plan", "?"), read.get(realization, "forwards", int, place), recompute, lazy,
        _offload(read, document, read.objects(realization, "offload", place, [])),
        _optimizer(read, realization), _parameters(read, realization), _runs_again(read, realization),
        document.get("expected"))


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
            calls = frozenset(read.get(op, "calls", list, here))
        ops.append((read.get(op, "module", str, here), read.get(op, "op", str, here), calls))
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
    moves = []
    for i, move in enumerate(read.objects(one, "moves", place)):
        here = f"{place}.moves[{i}]"
        maker = (move.get("module", ""), move.get("op", "?"), move.get("call", 0))
        moves.append(Move(read.get(move, "number", int, here), read.get(move, "bytes", int, here), maker,
                          read.get(move, "give_back", int, here), read.get(move, "fetch", int, here)))
    order = read.get(one, "fetch_order", list, place)
    if sorted(order) != sorted(move.number for move in moves):
        read.fail(f"{place}.fetch_order", f"{len(order)} numbers", f"those of the {len(moves)} moves, once each")
    return Offload(read.get(one, "pinned", bool, place, True), read.get(one, "side_streams", bool, place, True),
                   read.get(one, "count_min_bytes", int, place), moves, order)


def _optimizer(read, realization):
    for home in read.objects(realization, "homes", "realization", []):
        if home.get("kind") != "optimizer_state":
            raise ApplyError(f"{read.path}: the plan keeps {home.get('kind')}s in tier '{home.get('tier')}'; in PyTorch "
                             "memwall_apply moves activations and optimizer states only. Not implemented.")
    if "optimizer" not in realization:
        return None
    return read.get(realization, "optimizer", dict, "realization")


def _parameters(read, realization):
    if "model" not in realization:
        return None
    model = read.get(realization, "model", dict, "realization")
    found = {}
    for i, pair in enumerate(read.get(model, "parameters", list, "realization.model")):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], int)):
            read.fail(f"realization.model.parameters[{i}]", json.dumps(pair)[:80], "[name, bytes]")
        found[pair[0]] = pair[1]
    return found


def _runs_again(read, realization):
    if "runs_again" not in realization:
        return None
    found = []
    for i, one in enumerate(read.objects(realization, "runs_again", "realization")):
        place = f"realization.runs_again[{i}]"
        ops = [tuple(read.words(op, f"{place}.ops[{j}]")) for j, op in enumerate(read.get(one, "ops", list, place))]
        found.append((one.get("unit"), one.get("lazy"), ops))
    return found
