"""Memory of arrays: writes, seen by every name of an array; the variables that a write can reach.

A value is never changed: a write makes another one, and every name of the array stands for it. Names of parts of that
memory (views), and of arrays that may or may not be it, have no value from then on.
"""

from __future__ import annotations

from .values import Gone, Local, Num, Row, storages

#: Starts the hidden names of arrays that are arguments.
HIDDEN = "memory of "


class Memory:
    """Keeps the variables of all calls that are being captured."""

    def live(self):
        """The frames whose variables can be read again."""
        found, wanted = [], [self.frame, *reversed(self.callers)]
        while wanted:
            frame = wanted.pop(0)
            if frame is None or frame in found:
                continue
            found.append(frame)
            wanted.append(frame.parent)
            wanted += [value.frame for value in frame.env.values() if isinstance(value, Local)]
        return found

    def snapshot(self):
        return [(frame, dict(frame.env)) for frame in self.live()]

    def restore(self, snapshot):
        for frame, env in snapshot:
            frame.env = dict(env)

    def written(self, name, old, new, keep=()):
        """The array `old`, written to by `name`, is `new` from now on, but for the variables to keep."""
        self.writes.append((old.storage, new))
        for frame in self.live():
            for other, known in frame.env.items():
                if (frame, other) not in keep:
                    frame.env[other] = self.after_write(other, known, name, old, new)

    def after_write(self, other, known, name, old, new):
        """The variable `other` after the array `old` has become `new`."""
        if known is old:
            return new
        if isinstance(known, Row):
            items = [self.after_write(other, item, name, old, new) for item in known.items]
            gone = [item for item in items if isinstance(item, Gone)]
            return gone[0] if gone else known if all(a is b for a, b in zip(items, known.items)) else Row(items, known.is_list)
        if not any(one.shares(old.storage) for one in storages(known)):
            return known
        if is_same_array(known, old):
            return new
        if other.startswith(HIDDEN):
            self.w.fail(f"`{name}` shares memory with the argument `{other.removeprefix(HIDDEN)}`, as a part of it or as one of two arrays",
                        f"copy it first: `{name} = {name}.copy()`")
        return Gone(f"`{other}` is a view of `{name}`, which was written to since", f"copy it before: `{other} = {other}.copy()`")

    def values(self, nodes):
        """The values of expressions; a write in one is seen by those before it."""
        found = []
        for node in nodes:
            start = len(self.writes)
            value = self.value(node)
            found = [self.refreshed(known, start) for known in found]
            found.append(value)
        return found

    def refreshed(self, value, start):
        """A value that was taken before the writes from `start` on."""
        if not isinstance(value, (Num, Row)):
            return value
        for storage, new in self.writes[start:]:
            if not any(one.shares(storage) for one in storages(value)):
                continue
            if isinstance(value, Num) and not value.is_view and value.storage is storage:
                value = new
            else:
                self.w.fail("an array is used beside a call that writes to its memory", "write the call as a statement before")
        return value

    def no_writes(self, start, known, what):
        """States that nothing was written since to an array that was there before."""
        roots = {root for _, env in known for value in env.values() for one in storages(value) for root in one.roots}
        if any(not roots.isdisjoint(storage.roots) for storage, _ in self.writes[start:]):
            self.w.fail(f"{what} writes to an array", "write a loop")


def is_same_array(a, b):
    return isinstance(a, Num) and isinstance(b, Num) and a.rank > 0 and not a.is_view and not b.is_view and a.storage is b.storage
