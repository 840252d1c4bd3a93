"""Training: keeping freed memory, because every step makes the same large buffers."""

from __future__ import annotations

import ctypes
import sys

# glibc's names for the two limits (malloc.h).
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4


def keep_freed_memory() -> None:
    """
    Tell the C library to keep freed memory instead of returning it to the system.

    Every buffer above its limit is otherwise mapped afresh and faulted in page by page, which
    costs more than the arithmetic in it. Does nothing where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_MAX, 0)
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
