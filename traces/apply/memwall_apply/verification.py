"""Is a captured step the one that was planned? Compared: what runs again, in order and by module; what travels, from whom,
in which order, and whether streams wait; what is updated once; the peak of memory."""

import dataclasses

from .captured import Captured, is_copy, name_of
from .errors import VerifyError
from .memory_plan import Plan, load
from .races import Races

PEAK_TOLERANCE = 0.02  # Python's variables in forward hold results that the simulation gives back
MOST = 10  # sentences of one kind


@dataclasses.dataclass(frozen=True)
class Verified:
    """What was counted in a step that is as planned. Bytes; copies of activations, then of the optimizer."""
    rerun_operators: int
    sent: int
    sent_bytes: int
    back: int
    back_bytes: int
    peak_bytes: int
    planned_peak_bytes: int

    def __str__(self):
        parts = [f"{self.rerun_operators} operators run again", f"{self.sent} copies to the host ({self.sent_bytes} bytes)",
                 f"{self.back} back ({self.back_bytes} bytes)", f"a peak of {self.peak_bytes} bytes"]
        if self.planned_peak_bytes:
            parts[-1] += f" ({100 * (self.peak_bytes / self.planned_peak_bytes - 1):+.2f} % of the plan's)"
        return "As planned: " + ", ".join(parts) + "."


def verify(plan, capture):
    """`capture`: path of a step that memwall_capture has recorded of the model with the plan applied; not the first
    step. Returns a Verified. Raises VerifyError with a sentence per difference, ApplyError where a file cannot be read."""
    plan = plan if isinstance(plan, Plan) else load(plan)
    return _Comparison(plan, Captured(capture)).run()


class _Comparison:
    def __init__(self, plan, captured):
        self.plan, self.captured = plan, captured
        self.differences = []
        self.again = [r for r in captured.launched() if r.get("phase") == "recompute"]
        self.out = [r for kind, r in captured.records if is_copy(kind, r, True, ("forward",))]
        self.back = [r for kind, r in captured.records if is_copy(kind, r, False, ("backward", "recompute"))]
        self.down = [r for kind, r in captured.records if is_copy(kind, r, True, ("backward", "recompute", "optimizer"))]
        self.up = [r for kind, r in captured.records if is_copy(kind, r, False, ("optimizer",))]

    def run(self):
        self._reruns()
        self._statistics()
        self._moves()
        self._optimizer()
        self._peak()
        self.differences += Races(self.captured).run()[:MOST]
        if self.differences:
            raise VerifyError(self.differences)
        return Verified(len(self.again), len(self.out) + len(self.down), _bytes(self.out) + _bytes(self.down),
                        len(self.back) + len(self.up), _bytes(self.back) + _bytes(self.up), self.captured.peak(),
                        (self.plan.expected or {}).get("peak_requested_bytes", 0))

    def _say(self, sentence):
        self.differences.append(sentence)

    # ---- what runs again

    def _reruns(self):
        if self.plan.runs_again is None:
            if bool(self.plan.recompute or self.plan.lazy_ops) != bool(self.again):
                self._say(f"{len(self.again)} operators run again in backward; the plan has {len(self.plan.units)} units and "
                          f"{len(self.plan.lazy_ops)} groups of operators.")
            return
        found = [(r.get("module", ""), name_of(r)) for r in self.again]
        at = 0
        for unit, lazy, ops in (one for _ in range(self.plan.forwards) for one in self.plan.runs_again):
            part = found[at:at + len(ops)]
            if part != ops:
                first = next((i for i, (a, b) in enumerate(zip(part, ops)) if a != b), len(part))
                expected = ops[first] if first < len(ops) else None
                self._say(f"{self._rerun_text(unit, lazy)} should run {len(ops)} operators again; number {first} of them is "
                          f"{_op_text(part[first] if first < len(part) else None)}, expected {_op_text(expected)}.")
                return
            at += len(ops)
        if at != len(found):
            self._say(f"{len(found)} operators run again in backward, the plan expects {at}; the first too many is "
                      f"{_op_text(found[at])}.")

    def _rerun_text(self, unit, lazy):
        if unit is not None:
            return "The unit " + " + ".join(self.plan.units[unit][0])
        if lazy is not None:
            return "The group " + " + ".join(op for _, op, *_ in self.plan.lazy_ops[lazy].ops)
        return "The plan"

    def _statistics(self):
        """BatchNorm's operator always writes its averages; that nothing is added to them shows in its counter."""
        for record in self.again:
            for storage in record.get("writes", ()):
                one = self.captured.storages[storage]
                if one.get("preexisting") and one["kind"] == "parameter" and "batch_norm" not in name_of(record):
                    self._say(f"{name_of(record)} in {record.get('module', '')}, run again, updates {one.get('label')} a second time.")

    # ---- what travels

    def _moves(self):
        moves = sorted(self.plan.offload.moves, key=lambda m: m.number) if self.plan.offload else []
        order = self.plan.offload.fetch_order if self.plan.offload else []
        forwards = self.plan.forwards
        if len(self.out) != len(moves) * forwards:
            self._say(f"{len(self.out)} copies to the host in forward, the plan has {len(moves) * forwards}.")
        if len(self.back) != len(order) * forwards:
            self._say(f"{len(self.back)} copies back in backward, the plan has {len(order) * forwards}.")
        if self.differences or not moves:
            return
        makers = self.captured.makers()
        for one in range(forwards):
            begin, end = one * len(moves), (one + 1) * len(moves)
            self._moves_of_pass(self.out[begin:end], self.back[begin:end], moves, order, makers)

    def _moves_of_pass(self, out, back, moves, order, makers):
        on_host = {}
        for record, move in zip(out, moves):
            self._out(record, move, makers)
            written = _first(record, "writes")
            other = next((number for number, memory in on_host.items() if memory is not None and memory == written), None)
            if other is not None:
                self._say(f"Number {move.number} is copied over number {other} on the host, which has not come back.")
            on_host[move.number] = written
        sizes = {move.number: move.bytes for move in moves}
        for record, number in zip(back, order):
            if record["copy"] != sizes[number] or on_host[number] not in record.get("reads", ()):
                self._say(f"A copy back of {record['copy']} bytes comes where the plan brings back number {number} "
                          f"({sizes[number]} bytes): another storage, or another order.")

    def _out(self, record, move, makers):
        made = makers.get(_first(record, "reads"), {})
        if record["copy"] != move.bytes or (name_of(made) or move.maker[1]) != move.maker[1] or (
                made.get("module", "") != move.maker[0]):
            self._say(f"The copy to the host of number {move.number} is of {record['copy']} bytes made by {name_of(made)} in "
                      f"{made.get('module', '')}; the plan sends {move.bytes} bytes of {move.maker[1]} in {move.maker[0]}.")
        if self.plan.offload.pinned and record["to"] != "host_pinned":
            self._say(f"Number {move.number} is copied to {record['to']}; the plan expects page-locked memory (host_pinned).")

    def _optimizer(self):
        moved = (_bytes(self.down), _bytes(self.up))
        if self.plan.optimizer is None:
            return
        size = sum(s["bytes"] for s in self.captured.storages.values()
                   if s["kind"] == "optimizer_state" and s["place"] == "hbm")
        if size > 1024 * len(self.captured.storages):
            self._say(f"{size} bytes of optimizer states are on the device; the plan keeps them on the host.")
        if 0 in moved:
            self._say(f"{moved[0]} bytes of gradients go to the host and {moved[1]} of parameters come back; the plan expects both.")

    # ---- memory

    def _peak(self):
        planned = (self.plan.expected or {}).get("peak_requested_bytes")
        peak = self.captured.peak()
        if planned and abs(peak / planned - 1) > PEAK_TOLERANCE:
            self._say(f"The peak of memory is {peak} bytes, {100 * (peak / planned - 1):+.1f} % of what the plan expects "
                      f"({planned}).")


def _bytes(records):
    return sum(r["copy"] for r in records)


def _first(record, key):
    """A copy of a number that the host reads writes no storage."""
    return next(iter(record.get(key, ())), None)


def _op_text(op):
    return f"{op[1]} in {op[0] or 'the model'}" if op else "none"
