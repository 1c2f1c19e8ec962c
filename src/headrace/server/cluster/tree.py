"""A tree of versioned nodes in memory, changed by transactions: what the embedded store serves and keeps on disk.

Pure state, no I/O and no clock. `prepare` computes a transaction without changing anything, so that it can be written to disk
first; `apply` then makes it visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.server.cluster.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Op,
    SetData,
    Stat,
)


@dataclass(slots=True)
class Node:
    """One node of the tree."""

    data: bytes
    stat: Stat


@dataclass(slots=True)
class Prepared:
    """A computed transaction: the nodes as they will be (None: deleted), and the results for the caller."""

    zxid: int
    nodes: dict[str, Node | None] = field(default_factory=dict)
    results: list[Stat | None] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def durable(self, tree: Tree) -> list[tuple[str, Node | None]]:
        """The part that must be on disk: everything but ephemeral nodes."""
        kept: list[tuple[str, Node | None]] = []
        for path, node in self.nodes.items():
            before = tree.nodes.get(path)
            if node is not None:
                if node.stat.owner == 0:
                    kept.append((path, node))
                elif before is not None and before.stat.owner == 0:
                    kept.append((path, None))
            elif before is not None and before.stat.owner == 0:
                kept.append((path, None))
        return kept


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class Tree:
    def __init__(self, nodes: Iterable[tuple[str, Node]], zxid: int) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", Stat(0, 0))}
        self.nodes.update(nodes)
        self.zxid = zxid
        self._children: dict[str, set[str]] = {}
        for path in self.nodes:
            if path != "/":
                self._children.setdefault(parent_of(path), set()).add(path.rpartition("/")[2])

    def children(self, path: str) -> list[str]:
        return sorted(self._children.get(path, ()))

    def owned_by(self, session: int) -> list[str]:
        return [path for path, node in self.nodes.items() if node.stat.owner == session]

    def prepare(self, ops: Sequence[Op], session: int, zxid: int) -> Prepared:
        """Compute `ops` as transaction `zxid`; raises ConflictError for the first that is not possible."""
        prepared = Prepared(zxid)
        staged = prepared.nodes

        def find(path: str) -> Node | None:
            return staged[path] if path in staged else self.nodes.get(path)

        for index, op in enumerate(ops):
            node = find(op.path)
            result: Stat | None = None
            if isinstance(op, Create):
                if node is not None:
                    raise NodeExistsError(index, op.path)
                parent = find(parent_of(op.path))
                if parent is None or parent.stat.owner:
                    raise NoNodeError(index, parent_of(op.path))
                result = Stat(0, prepared.zxid, session if op.ephemeral else 0)
                staged[op.path] = Node(op.data, result)
                prepared.created.append(op.path)
            else:
                if node is None:
                    raise NoNodeError(index, op.path)
                if op.version not in (-1, node.stat.version):
                    raise BadVersionError(index, op.path)
                if isinstance(op, SetData):
                    result = node.stat._replace(version=node.stat.version + 1)
                    staged[op.path] = Node(op.data, result)
                elif isinstance(op, Delete):
                    if self._has_children(op.path, staged):
                        raise NotEmptyError(index, op.path)
                    staged[op.path] = None
                    prepared.deleted.append(op.path)
                else:
                    assert isinstance(op, Check)
            prepared.results.append(result)
        return prepared

    def _has_children(self, path: str, staged: dict[str, Node | None]) -> bool:
        prefix = path + "/"
        if any(node is not None and parent_of(child) == path for child, node in staged.items()):
            return True
        return any(staged.get(prefix + name, True) is not None for name in self._children.get(path, ()))

    def apply(self, prepared: Prepared) -> None:
        self.zxid = prepared.zxid
        for path, node in prepared.nodes.items():
            name = path.rpartition("/")[2]
            if node is None:
                if self.nodes.pop(path, None) is not None:
                    self._children[parent_of(path)].discard(name)
            else:
                self.nodes[path] = node
                self._children.setdefault(parent_of(path), set()).add(name)
