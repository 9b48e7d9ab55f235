"""What was recorded, as the lines of FORMAT.md: numbers in order of first appearance, kinds of storages decided."""


class Lines:
    """Records as JSON objects."""

    def __init__(self, recorder):
        self.r = recorder
        self.storage_number, self.op_number = {}, 0
        self.calls_left = 0  # of operators that are left out: they are the next one's
        # Host memory matters only where something is copied to or from it.
        self.known = {s for record in recorder.records if record.type in ("copy", "collective")
                      for s in (*record.reads, *record.writes)}
        self.left_out, self.saved = 0, set()
        self.last, self.unreferenced = None, []  # the line of the last operator; what is not referred to behind it

    def all(self):
        self._kinds()
        lines = []
        for storage in self.r.preexisting:
            if self._matters(storage):
                lines.append(self._storage(storage, True))
        self._saves()
        for record in self.r.records:
            self._add(record, lines)
        self._end_references()
        return lines

    def _saves(self):
        """What is saved under an operator's number is the operator's if it uses it. A torch.autograd.Function of several
        operators saves when it has run: then it is the last one's that used it."""
        index = {id(record): i for i, record in enumerate(self.r.records)}
        for sequence, first in self.r.op_of_sequence.items():
            for storage, at in self.r.saved.get(sequence, {}).items():
                if storage.place != "hbm":
                    continue
                owner = first
                if storage not in first.reads and storage not in first.writes:
                    for record in reversed(self.r.records[index[id(first)]:at]):
                        if record.type in ("op", "copy", "collective") and storage in (*record.reads, *record.writes):
                            owner = record
                            break
                owner.saves.append(storage)
                self.saved.add(storage)

    def _end_references(self):
        numbers = [self.storage_number[s] for s in self.unreferenced if s in self.storage_number]
        if numbers and self.last is not None:
            self.last["unreferenced"] = numbers
        self.unreferenced = []

    def _kinds(self):
        fed = {s for record in self.r.records if record.fields.get("phase") in ("forward", "recompute")
               for s in record.reads if record.type == "op"}
        for storage in self.r.preexisting:
            storage.kind = storage.kind or ("input" if storage in fed else "unknown")
        for record in self.r.records:
            for storage in record.writes:
                if storage.kind is None:
                    made_forward = storage.born in ("forward", "recompute")
                    storage.kind = "activation" if made_forward else "workspace"
        for record in self.r.records:
            if record.type == "copy" and record.fields["from"] != "hbm" and record.fields["phase"] == "forward":
                for storage in record.writes:
                    if storage.kind == "activation" and not record.fields["module"]:
                        storage.kind = "input"
        for record in self.r.records:
            for storage in record.writes:
                if record.type == "op" and record.fields.get("kernels") == 0 and storage.kind == "activation":
                    storage.kind = "input"  # made by the host for the device

    def _matters(self, storage):
        return storage.place == "hbm" or storage in self.known

    def _storage(self, storage, preexisting):
        number = self.storage_number[storage] = len(self.storage_number)
        line = {"storage": number, "bytes": storage.bytes, "kind": storage.kind or "unknown", "place": storage.place}
        if storage.label:
            line["label"] = storage.label
        if preexisting:
            line["preexisting"] = True
        if storage.stream:
            line["stream"] = storage.stream
        return line

    def _add(self, record, lines):
        if record.type in ("alloc", "free"):
            storage = record.writes[0]
            if record.type == "free" and storage in self.unreferenced and storage not in self.saved:
                self.unreferenced.remove(storage)  # it ends with its last reference
            if not self._matters(storage):
                return
            if record.type == "alloc":
                lines.append(self._storage(storage, False))
            lines.append({record.type: self.storage_number[storage], **record.fields})
            return
        if record.type == "unreferenced":
            self.unreferenced += [s for s in record.writes if s not in self.unreferenced]
            return
        if record.type == "op" and record.fields.get("kernels") == 0:
            record.writes = [s for s in record.writes if self._matters(s)]
            if not record.writes:
                self.left_out += 1
                self.calls_left += record.fields.get("calls", 1)
                return
        line = dict(record.fields)
        if record.type in ("op", "copy", "collective"):
            self._end_references()
            self.last = line
            if self.calls_left:
                line["calls"] = line.get("calls", 1) + self.calls_left
                self.calls_left = 0
            record.number = self.op_number
            self.op_number += 1
            line["id"] = record.number
            if not line.get("module"):
                line.pop("module", None)
            number = self.storage_number
            line["reads"] = [number[s] for s in record.reads]
            line["writes"] = [number[s] for s in record.writes]
            for key, tensors in (("inputs", record.inputs), ("outputs", record.outputs)):
                if tensors:
                    line[key] = [[shape, dtype, number[s]] + ([strides] if strides else [])
                                 for shape, dtype, s, strides in tensors if s in number]
            saves = [number[s] for s in record.saves if s in number]
            if saves:
                line["saves"] = saves
            if record.forward is not None:
                line["forward"] = record.forward.number
        lines.append(line)
