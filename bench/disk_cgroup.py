"""A bound on the memory of a program and of the page cache it fills, by a cgroup below our own."""
import os
import time
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


def own_group():
    """The directory of our memory cgroup and the name of its limit: version 2, else version 1."""
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups[controllers] = path.lstrip("/")
    if "memory" in groups:
        return MOUNT / "memory" / groups["memory"], "memory.limit_in_bytes"
    return MOUNT / groups[""], "memory.max"


class MemoryLimit:
    """`with MemoryLimit(n) as limit`: limit.argv(command) runs the command in at most n bytes.

    Raises OSError where cgroups cannot be made.
    """

    def __init__(self, limit_bytes):
        parent, name = own_group()
        if name == "memory.max" and "memory" not in (
                parent / "cgroup.subtree_control").read_text().split():
            (parent / "cgroup.subtree_control").write_text("+memory")
        self.path = parent / f"terrace_bench_{os.getpid()}"
        self.path.mkdir()
        try:
            (self.path / name).write_text(str(limit_bytes))
        except OSError:
            self.path.rmdir()
            raise

    def argv(self, command):
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.path, *command]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)  # the program's last pages are still being given back
        self.path.rmdir()
