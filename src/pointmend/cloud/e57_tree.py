"""Room `cloud`: the tree of an E57 file as plain Python, read from its XML and built again."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from pointmend.errors import FileFormatError

INT64 = (-(2**63), 2**63 - 1)
_MAX_DEPTH = 64
_LEAVES = ("Integer", "ScaledInteger", "Float", "String", "Blob")
_CONTAINERS = ("Structure", "Vector", "CompressedVector")


def library() -> Any:
    """Return libE57Format's Python face, which takes a while to import."""
    try:
        return importlib.import_module("pye57.libe57")
    except ImportError as error:
        raise FileFormatError("E57 files need pye57; install it with: pip install pye57") from error


@dataclass(frozen=True)
class Node:
    """
    One element of the tree.

    Parameters
    ----------
    kind : str
        "Structure", "Vector", "CompressedVector", "Integer", "ScaledInteger", "Float", "String" or
        "Blob".
    text : str
        The value of a leaf, as the XML spells it.
    attributes : dict of str
        What the XML says beside the kind: limits, scale, precision, places in the file.
    children : tuple of (name, Node)
        What is in a container.
    blob : bytes
        The content of a Blob.
    """

    kind: str
    text: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[tuple[str, Node], ...] = ()
    blob: bytes = b""

    def get(self, name: str) -> Node | None:
        """Return the child `name`, or None."""
        return next((child for found, child in self.children if found == name), None)

    def without(self, *names: str) -> Node:
        """Return the node without some children."""
        kept = tuple(pair for pair in self.children if pair[0] not in names)
        return Node(self.kind, self.text, self.attributes, kept, self.blob)

    def replaced(self, name: str, child: Node) -> Node:
        """Return the node with child `name` exchanged in place, or added last."""
        names = [found for found, _ in self.children]
        pairs = [(found, child if found == name else old) for found, old in self.children]
        if name not in names:
            pairs.append((name, child))
        return Node(self.kind, self.text, self.attributes, tuple(pairs), self.blob)

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below."""
        yield self
        for _, child in self.children:
            yield from child.walk()

    def steps(self) -> Iterator[tuple[str, str, Node]]:
        """Yield (step of a path, name, child) of all children; those of a Vector are numbered."""
        for number, (name, child) in enumerate(self.children):
            yield (str(number) if self.kind == "Vector" else name), name, child

    def integer(self, name: str | None, default: int) -> int:
        """Return attribute `name` (None: the value itself) as a whole number of 64 bits."""
        text = (self.text if name is None else self.attributes.get(name, "")).strip()
        try:
            number = int(text) if text else default
        except ValueError:
            number = INT64[1] + 1
        if not INT64[0] <= number <= INT64[1]:
            raise FileFormatError(f"E57 has {text[:40]!r} where a whole number is expected")
        return number

    def real(self, name: str | None, default: float) -> float:
        """Return attribute `name` (None: the value itself) as a number."""
        text = (self.text if name is None else self.attributes.get(name, "")).strip()
        try:
            return float(text) if text else default
        except ValueError:
            raise FileFormatError(f"E57 has {text[:40]!r} where a number is expected") from None

    def integer_limits(self) -> tuple[int, int]:
        """Return minimum and maximum of an Integer or ScaledInteger, as stored."""
        return self.integer("minimum", INT64[0]), self.integer("maximum", INT64[1])

    def float_limits(self) -> tuple[float, float]:
        """Return minimum and maximum of a Float; one that is none is the largest there is."""
        largest = SINGLE_MAX if self.is_single else DOUBLE_MAX
        low, high = self.real("minimum", -largest), self.real("maximum", largest)
        return low if math.isfinite(low) else -largest, high if math.isfinite(high) else largest

    @property
    def is_single(self) -> bool:
        """Whether a Float has 32 bits."""
        return self.attributes.get("precision") == "single"


DOUBLE_MAX = math.ldexp(2 - 2.0**-52, 1023)
SINGLE_MAX = math.ldexp(2 - 2.0**-23, 127)


def text_node(value: str) -> Node:
    """Return a String."""
    return Node("String", value)


def real_node(value: float) -> Node:
    """Return a Float of double precision."""
    return Node("Float", repr(float(value)))


def integer_node(value: int) -> Node:
    """Return an Integer without limits."""
    return Node("Integer", str(int(value)))


def structure(**children: Node) -> Node:
    """Return a Structure."""
    return Node("Structure", children=tuple(children.items()))


@dataclass
class _Open:
    """An element whose end has not come yet."""

    name: str
    kind: str
    attributes: dict[str, str]
    children: list[tuple[str, Node]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class _Builder:
    """Builds the tree while the XML is read; nothing of it recurses, so depth cannot hurt."""

    def __init__(self) -> None:
        self.stack = [_Open("", "Structure", {})]
        self.extensions: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.stack) > _MAX_DEPTH:
            raise FileFormatError(f"E57 has elements nested deeper than {_MAX_DEPTH}")
        for key in attributes:
            # The parser behind libE57 would fetch what it is told to validate against.
            if key.endswith("chemaLocation"):
                raise FileFormatError("E57 names an XML schema to be fetched; this is not done")
        if len(self.stack) == 1:
            self.extensions = {
                key[6:]: uri for key, uri in attributes.items() if key.startswith("xmlns:")
            }
            attributes = {k: v for k, v in attributes.items() if not k.startswith("xmlns")}
        kind = attributes.pop("type", "")
        if kind not in _LEAVES + _CONTAINERS:
            raise FileFormatError(f"E57 element '{name[:40]}' has the unknown type {kind[:40]!r}")
        if self.stack[-1].kind not in _CONTAINERS:
            raise FileFormatError(f"E57 element '{name[:40]}' stands inside a value")
        self.stack.append(_Open(name, kind, attributes))

    def data(self, text: str) -> None:
        self.stack[-1].text.append(text)

    def end(self, _: str) -> None:
        done = self.stack.pop()
        text = "".join(done.text) if done.kind in _LEAVES else ""
        node = Node(done.kind, text, done.attributes, tuple(done.children))
        _check_numbers(node)
        self.stack[-1].children.append((done.name, node))

    def refuse_doctype(self, *_: object) -> None:
        raise FileFormatError("E57 has a document type declaration, which the format does not know")

    def declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.upper() != "UTF-8":
            raise FileFormatError(f"E57 has XML in {encoding[:40]}; the format knows UTF-8 only")


def _check_numbers(node: Node) -> None:
    """Convert all numbers once, so that a bad one is found while reading."""
    if node.kind in ("Integer", "ScaledInteger"):
        node.integer(None, 0)
        low, high = node.integer_limits()
        if low > high:
            raise FileFormatError("E57 has a minimum above its maximum")
    if node.kind == "Vector":
        node.integer("allowHeterogeneousChildren", 0)
    if node.kind == "Float":
        node.real(None, 0.0)
        node.float_limits()
    if node.kind == "ScaledInteger":
        scale, offset = node.real("scale", 1.0), node.real("offset", 0.0)
        if not (math.isfinite(scale) and math.isfinite(offset)) or scale == 0.0:
            raise FileFormatError(f"E57 has scaled integers with scale {scale}, offset {offset}")


def parse_xml(xml: bytes) -> tuple[Node, dict[str, str]]:
    """Return the root of the tree, and the name space of each prefix for extensions."""
    builder = _Builder()
    parser = expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = builder.refuse_doctype
    parser.XmlDeclHandler = builder.declared
    try:
        parser.Parse(xml, True)
    except (expat.ExpatError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise FileFormatError(f"E57 has damaged XML: {reason}") from error
    name, root = builder.stack[0].children[0]
    if name != "e57Root" or root.kind != "Structure":
        raise FileFormatError(f"E57 has an XML root '{name[:40]}' instead of 'e57Root'")
    return root, builder.extensions


class TreeWriter:
    """
    Makes nodes of libE57Format for a file that is being written.

    Parameters
    ----------
    lib : module
        libE57Format.
    file : ImageFile
    """

    def __init__(self, lib: Any, file: Any) -> None:
        self._lib = lib
        self._file = file
        self._blobs: list[tuple[Any, bytes]] = []

    def build(self, node: Node) -> Any:
        """Return `node` and all below it, to be hung into the file's tree."""
        lib, file = self._lib, self._file
        if node.kind == "Structure":
            made = lib.StructureNode(file)
            for name, child in node.children:
                made.set(name, self.build(child))
        elif node.kind == "Vector":
            made = lib.VectorNode(file, node.integer("allowHeterogeneousChildren", 0) != 0)
            for _, child in node.children:
                made.append(self.build(child))
        elif node.kind == "Integer":
            made = lib.IntegerNode(file, node.integer(None, 0), *node.integer_limits())
        elif node.kind == "ScaledInteger":
            scaling = node.real("scale", 1.0), node.real("offset", 0.0)
            made = lib.ScaledIntegerNode(
                file, node.integer(None, 0), *node.integer_limits(), *scaling
            )
        elif node.kind == "Float":
            precision = lib.E57_SINGLE if node.is_single else lib.E57_DOUBLE
            low, high = node.float_limits()
            value = min(max(node.real(None, 0.0), low), high)  # libE57 reads inf, but has none
            made = lib.FloatNode(file, value, precision, low, high)
        elif node.kind == "Blob":
            made = lib.BlobNode(file, len(node.blob))
            self._blobs.append((made, node.blob))
        else:
            made = lib.StringNode(file, node.text)
        return made

    def write_blobs(self) -> None:
        """Write the content of all blobs, which is only allowed once they hang in the tree."""
        for made, content in self._blobs:
            if content:
                made.write(bytearray(content), 0, len(content))
