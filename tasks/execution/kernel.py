"""What Linux offers to fence a program in: namespaces, Landlock, another user. System calls through ctypes.

Loaded by the launcher, whose start-up every program pays for: standard modules that load fast, and nothing else.
Numbers are those of the kernel's user-space headers; the system calls above 400 have one number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import sys

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_SYS_MOUNT_SETATTR = 442
_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_ADD_RULE, _SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38

_NOBODY = 65534
_INNER_USER = 1000
"""User number inside the namespace. Not 0: a program that is executed as another user keeps no capability."""
_FOLDERS_IN_MEMORY = 1024
"""Files and folders that the working folder in memory holds at most."""
_HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def _call(name: str, *arguments: object) -> int:
    if _LIBC is None:
        raise OSError(f"{name}: not on {sys.platform}")
    # Some of these functions take a variable number of arguments, each as wide as a register.
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = getattr(_LIBC, name)(*wide)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    text = [None if part is None else part.encode() for part in (source, target, kind)]
    _call("mount", *text, flags, data.encode())


def enter_namespaces(folder: str, size: int, needed: tuple[str, ...]) -> None:
    """Move this process into a user, mount, network and IPC namespace, and its next child into a PID namespace.

    Everything mounted becomes read-only and without devices, but for harmless ones; ``folder`` and ``/dev/shm`` become
    empty folders in memory that vanish with the namespace. ``/run``, where the sockets of services are, is hidden. The
    network holds nothing but a loopback device that is down.

    Args:
        folder: An existing folder, absolute.
        size: Bytes that each of the two folders holds at most.
        needed: Files and folders that a program must be able to read (the interpreter and its library).

    Raises:
        OSError: The system does not allow it. This process may be half inside: end it.
    """
    user, group = os.geteuid(), os.getegid()
    spaces = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    _call("unshare", spaces)
    # A process that stopped being root may not write to its own files in /proc.
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{_INNER_USER} {user} 1"),
        ("gid_map", f"{_INNER_USER} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # The program may be root outside, without capabilities: as the owner, it could write to devices (a disk).
    restrictions = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV
    attributes = (ctypes.c_uint64 * 4)(restrictions, 0, 0, 0)
    _call("syscall", _SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, ctypes.byref(attributes), 32)
    for device in filter(os.path.exists, _HARMLESS_DEVICES):
        _mount(device, device, None, _MS_BIND)
        _mount("none", device, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID)
    options = f"size={size},nr_inodes={_FOLDERS_IN_MEMORY},mode=700"
    for target in filter(os.path.isdir, ("/dev/shm", folder)):
        _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
    if os.path.isdir("/run") and not any(os.path.realpath(path).startswith("/run/") for path in (folder, *needed)):
        _mount("tmpfs", "/run", "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, "size=4k,mode=755")


def mount_processes() -> bool:
    """Let ``/proc`` show this PID namespace; False where the system does not allow it (some containers)."""
    try:
        _mount("proc", "/proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:
        return False
    return True


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _call("prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where there is no such thing."""
    try:
        _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except OSError:
        return False
    return True


def drop_root(folder: str, needed: tuple[str, ...]) -> bool:
    """As root, become the user "nobody" and hand ``folder`` over to it.

    Args:
        folder: The program's working folder.
        needed: Files and folders that a program must be able to read (the interpreter and its library).

    Returns:
        Whether it was done: False for an ordinary user, and where "nobody" could not reach what is needed.
    """
    if os.geteuid() != 0 or not all(_open_to_all(path) for path in (os.path.dirname(folder), *needed)):
        return False
    try:
        os.chown(folder, _NOBODY, _NOBODY)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    except OSError:
        return False
    return os.geteuid() == _NOBODY


def _open_to_all(path: str) -> bool:
    path = os.path.realpath(path)
    if not os.stat(path).st_mode & (0o001 if os.path.isdir(path) else 0o004):
        return False
    return os.path.dirname(path) == path or _open_to_all(os.path.dirname(path))


def give_up_privileges() -> None:
    """No program that is executed from here on gains a capability or another user's rights."""
    for capability in range(64):
        try:
            _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError:
            break
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def landlock_version() -> int:
    """Version of Landlock's interface; 0 where the kernel has none."""
    try:
        return _call("syscall", _SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def landlock(folder: str, version: int) -> None:
    """Refuse this process and its descendants writing outside ``folder``, TCP (version 4) and signals (6).

    Args:
        folder: An existing folder, absolute.
        version: What ``landlock_version`` answered, 1 or more. ``give_up_privileges`` was called before.

    Raises:
        OSError: The kernel refused.
    """
    last = 15 if version >= 5 else 14 if version >= 3 else 13 if version >= 2 else 12
    # Write file (1), remove folder and file, make devices, folders, files, sockets, links (4 to 12), move (13),
    # truncate (14), control devices (15).
    writing = sum(1 << bit for bit in (1, *range(4, last + 1)))
    fields = (writing, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = (ctypes.c_uint64 * 3)(*fields)
    handle = _call("syscall", _SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    on_a_file = writing & (1 << 1 | 1 << 14)
    for path, rights in ((folder, writing), ("/dev/null", on_a_file)):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        _call("syscall", _SYS_LANDLOCK_ADD_RULE, handle, 1, rule, 0)
        os.close(place)
    _call("syscall", _SYS_LANDLOCK_RESTRICT_SELF, handle, 0)
    os.close(handle)
