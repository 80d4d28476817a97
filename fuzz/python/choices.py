"""Bytes as choices, as in the targets in Rust; and values that nobody means."""

import numpy as np

#: What stands where a number, a name, a dict or a list should.
STRANGE = [
    None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**70), 10**400, 10**5000, 0.0, -0.5, 1.5, 1e39, 1e308, float("nan"), float("inf"),
    1j, "", "x", "a", "reward", "\0", "ä" * 50, "long" * 9999, "\x1b[31m\n", b"bytes", [], [1], [[1], [1, 2]], [None], (), (1, 2), ((), [3]), {}, {1: 2},
    {"a": {}}, {1: 2, "x": 3}, {"x": [1.0]}, set(), object(), len, range(3), ..., Exception("x"), np.nan, np.int64(-3),
    np.uint64(2**64 - 1), np.float32(2), np.bool_(True), np.array(1), np.array([]), np.zeros((2, 2)), np.full(3, np.nan),
    np.array(["a"]), np.array([None]), np.zeros(2, bool), np.zeros(2, complex), np.datetime64("2020-01-01"),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), np.ma.masked, memoryview(b"xy"),
]  # fmt: skip


class Choices:
    """Choices that come from bytes; all zero once they are used up."""

    def __init__(self, given):
        self._rest = iter(given)

    def byte(self):
        return next(self._rest, 0)

    def below(self, count):
        return self.byte() % count

    def pick(self, all_of_them):
        return all_of_them[self.below(len(all_of_them))]

    def one_in(self, count):
        """Never true once the bytes are used up."""
        return self.below(count) == count - 1

    def value(self):
        """Something strange, by itself or inside something else."""
        found = self.pick(STRANGE)
        wrap = self.below(16)
        if wrap == 1:
            return [found]
        if wrap == 2:
            return {"x": found}
        return (found, 1) if wrap == 3 else found


def edited(document, choices):
    """The same with one entry replaced, left out or added, somewhere in dicts of dicts."""
    if not isinstance(document, dict) or not document or choices.one_in(12):
        return choices.value()
    document = dict(document)
    key = choices.pick(list(document))
    what = choices.below(8)
    if what == 6:
        del document[key]
    elif what == 7:
        document[choices.pick(["a", "b", "c", 0, 1.5, "cost", None, (), "kind"])] = choices.value()
    else:
        document[key] = edited(document[key], choices)
    return document
