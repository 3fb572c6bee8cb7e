"""A seccomp filter: system calls that programs under test have no use for and that get around their limits.

Memory behind a descriptor (``memfd_create``, System V segments) belongs to no process's resident size, and a user
namespace of its own gives a program back the right to mount. Loaded by the launcher, whose start-up every program pays
for: standard modules that load fast, and nothing else. Numbers are those of the kernel's user-space headers.
"""

from __future__ import annotations

import ctypes
import os
import struct

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000, 1, 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets into the kernel's ``seccomp_data``."""
_CLONE_NEWUSER = 0x10000000
_OTHER_ABI = 0x40000000
"""Numbers of the x32 interface begin here; every other architecture has none that high."""

_ARCHITECTURES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {"clone": 56, "mount": 165, "unshare": 272, "setns": 308, "memfd_create": 319, "shmget": 29, "ptrace": 101},
    ),
    "aarch64": (
        0xC00000B7,
        {"clone": 220, "mount": 40, "unshare": 97, "setns": 268, "memfd_create": 279, "shmget": 194, "ptrace": 117},
    ),
}
"""Audit number of an architecture and its numbers of system calls."""
_CLONE3, _MEMFD_SECRET, _IO_URING_SETUP = 435, 447, 425
"""Numbers that are the same everywhere."""

_Instruction = tuple[int, int, int, int]


def refuse_system_calls() -> bool:
    """Refuse them to this process and its descendants; False where the system or this architecture has no filter.

    ``PR_SET_NO_NEW_PRIVS`` must be set before (``kernel.give_up_privileges``).
    """
    known = _ARCHITECTURES.get(os.uname().machine)
    if known is None:
        return False
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _program(*known))
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a number of instructions, and where they are.
    described = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(described, len(described))
    libc = ctypes.CDLL(None, use_errno=True)
    values = (_SECCOMP_MODE_FILTER, ctypes.addressof(holder), 0, 0)
    refused: int = libc.prctl(_PR_SET_SECCOMP, *map(ctypes.c_ulong, values))
    return refused == 0


def _program(architecture: int, numbers: dict[str, int]) -> list[_Instruction]:
    """The filter's instructions: (code, how many to pass over if it is so, how many if not, value)."""
    refusal = (_RETURN, 0, 0, _REFUSE | _EPERM)
    refused = [number for name, number in numbers.items() if name != "clone"] + [_MEMFD_SECRET, _IO_URING_SETUP]
    program = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture),
        refusal,
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _OTHER_ABI),
        refusal,
    ]
    for number in refused:
        program += [(_JUMP_EQUAL, 0, 1, number), refusal]
    # glibc falls back from clone3, whose flags a filter cannot see, to clone.
    program += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _REFUSE | _ENOSYS)]
    program += [
        (_JUMP_EQUAL, 0, 3, numbers["clone"]),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_ANY_BIT, 0, 1, _CLONE_NEWUSER),
        refusal,
    ]
    return [*program, (_RETURN, 0, 0, _ALLOW)]
