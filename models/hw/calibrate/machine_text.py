"""Numbers of a machine file (textproto), read and replaced one by one; everything else keeps its bytes."""

import re

TOKEN = re.compile(r'\s+|#[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|[-+0-9.][-+0-9.eE]*|[{}\[\]:,]')
UNITS = {"B": 1, "B/s": 1, "FLOP/s": 1, "s": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30, "GB/s": 1e9, "TB/s": 1e12, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "us": 1e-6, "ns": 1e-9, "ms": 1e-3,
         "%": 0.01, "": 1}


def quantity(text):
    number, unit = re.fullmatch(r"([-+0-9.eE]+)\s*(\S*)", text).groups()
    return float(number) * UNITS[unit]


class Block:
    def __init__(self, begin):
        self.begin, self.end = begin, None  # positions of { and } in the text; the file itself has neither
        self.fields = []                    # (name, Block or text)

    def key(self):
        name, value = self.fields[0] if self.fields else ("", "")
        return value.strip('"') if isinstance(value, str) else ""

    def is_curve(self):
        """The efficiency of a fabric is a curve, those of a GPU are a list."""
        return bool(self.fields) and self.fields[0][0] == "point"

    def find(self, path):
        """"gpu.efficiency.gemm.fixed": elements of lists are named by their first field. None where absent."""
        if not path:
            return self
        for name, value in self.fields:
            if not isinstance(value, Block):
                continue
            rest = path[len(name) + 1:] if path.startswith(name + ".") or path == name else None
            if rest is None:
                continue
            if name in LISTS and not value.is_curve():
                key = value.key()
                if rest != key and not rest.startswith(key + "."):
                    continue
                rest = rest[len(key) + 1:]
            found = value.find(rest)
            if found:
                return found
        return None


LISTS = {"peak", "efficiency", "attention", "main_loop", "tier", "link", "route", "fabric", "mig_profile", "duplex", "collective",
         "calibration"}


def parse(text):
    root, stack, name, position = Block(0), [], None, 0
    stack.append(root)
    for match in TOKEN.finditer(text):
        if match.start() != position:
            raise ValueError("unexpected text at %d" % position)
        position, token = match.end(), match.group()
        if token.isspace() or token[0] == "#" or token in ":,[]":
            continue
        if token == "{":
            block = Block(match.start())
            stack[-1].fields.append((name, block))
            stack.append(block)
            name = None
        elif token == "}":
            stack.pop().end = match.start()
        elif name is None:
            name = token
            continue
        else:
            stack[-1].fields.append((name, token))
            if match.string[match.end():].lstrip()[:1] != ",":
                name = None
            continue
        name = None
    root.end = len(text)
    return root


class MachineText:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.original = self.text = file.read()

    def value(self, path, fallback=None):
        found = parse(self.text).find(path)
        if not found:
            if fallback is None:
                raise KeyError(path)
            return fallback
        return quantity(dict((n, v) for n, v in found.fields)["value"].strip('"'))

    def has(self, path):
        return bool(parse(self.text).find(path))

    def source(self, path):
        """Of a number that is there."""
        return dict(parse(self.text).find(path).fields)["source"].strip('"')

    def _put(self, path, body):
        """Replaces the block at `path`, or makes it at the end of the block above."""
        found = parse(self.text).find(path)
        if found:
            self.text = self.text[:found.begin] + body + self.text[found.end + 1:]
            return
        above, _, name = path.rpartition(".")
        parent = parse(self.text).find(above)
        if not parent:
            raise KeyError(above)
        line = self.text.rfind("\n", 0, parent.end) + 1
        indent = " " * (parent.end - line) + "  "
        self.text = self.text[:line] + indent + name + " " + body + "\n" + self.text[line:]

    def set(self, path, value, source):
        self._put(path, '{ value: "%s" source: "%s" }' % (value, source))

    def set_curve(self, path, points, source):
        indent = "  " * (path.count(".") - len([p for p in path.split(".")[:-1] if p in LISTS]))
        lines = "".join('%s  point: "%s"\n' % (indent, point) for point in points)
        self._put(path, '{\n%s%s  source: "%s"\n%s}' % (lines, indent, source, indent))

    def make(self, path, first_field=""):
        """An empty block, unless it is there; `first_field`: its key, for elements of lists."""
        if parse(self.text).find(path):
            return
        above, _, name = path.rpartition(".")
        key = None
        if first_field:
            key, (above, _, name) = name, above.rpartition(".")
        parent = parse(self.text).find(above)
        line = self.text.rfind("\n", 0, parent.end) + 1
        indent = " " * (parent.end - line) + "  "
        inner = "%s  %s: %s\n" % (indent, first_field, key) if key else ""
        self.text = self.text[:line] + "%s%s {\n%s%s}\n" % (indent, name, inner, indent) + self.text[line:]

    def changed(self):
        return self.text != self.original

    def write(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text)
