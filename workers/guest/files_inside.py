"""Files as programs see them, opened from outside: no link leads out, no pipe or device blocks.

Paths are resolved by the kernel (openat2) as if the programs' root were the only one there is.
"""

import contextlib
import ctypes
import errno
import os
import stat
import struct

from workers.guest import kernel_calls

SYS_OPENAT2 = 437
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
MAX_FILE_BYTES = 256 << 20
FOLDER = os.O_PATH | os.O_DIRECTORY
LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_libc = ctypes.CDLL(None, use_errno=True)


class FilesInside:
    """The files below one root, which a reset may replace."""

    def __init__(self) -> None:
        self._root = os.open("/", FOLDER | os.O_CLOEXEC)
        self._owner: tuple[int, int] | None = None

    def use_root_of(self, pid: int) -> None:
        """See what this process sees. Raises OSError."""
        root = os.open(f"/proc/{pid}/root", FOLDER | os.O_CLOEXEC)
        os.close(self._root)
        self._root = root

    def use_rights_of(self, uid: int, gid: int) -> None:
        """Open only what this user may, although the agent may more."""
        self._owner = uid, gid

    def _as_owner(self) -> contextlib.AbstractContextManager[None]:
        return kernel_calls.with_files_of(*self._owner) if self._owner else contextlib.nullcontext()

    def open(self, path: str, flags: int, mode: int = 0) -> int:
        """A handle of an absolute path. Raises OSError."""
        how = struct.pack("QQQ", flags | os.O_CLOEXEC, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
        size = ctypes.c_size_t(len(how))
        with self._as_owner():
            handle = _libc.syscall(SYS_OPENAT2, self._root, os.fsencode(path), ctypes.c_char_p(how), size)
            number = ctypes.get_errno()
        if handle < 0:
            raise OSError(number, os.strerror(number), path)
        return handle

    def read(self, path: str) -> bytes:
        """A regular file's bytes. Raises OSError; IsADirectoryError for all that is no regular file.

        One handle is looked at and read: a program may put another file in its place meanwhile.
        """
        handle = self.open(path, LOOK)
        with os.fdopen(handle, "rb") as file:
            if _size_of_regular(handle, path) > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, f"larger than {MAX_FILE_BYTES} bytes", path)
            return file.read(MAX_FILE_BYTES)

    def write(self, path: str, data: bytes) -> None:
        """Write a regular file; folders are made. Raises OSError."""
        self._make_folders(os.path.dirname(path))
        handle = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
        with os.fdopen(handle, "wb") as file:
            _size_of_regular(handle, path)
            os.ftruncate(handle, 0)
            file.write(data)

    def _make_folders(self, path: str) -> None:
        try:
            os.close(self.open(path, FOLDER))
            return
        except FileNotFoundError:
            self._make_folders(os.path.dirname(path))
        above = self.open(os.path.dirname(path), FOLDER)
        try:
            with self._as_owner():
                os.mkdir(os.path.basename(path), dir_fd=above)
        finally:
            os.close(above)

    def is_folder(self, path: str) -> bool:
        return self._is(path, FOLDER)

    def exists(self, path: str) -> bool:
        return self._is(path, os.O_PATH)

    def _is(self, path: str, flags: int) -> bool:
        try:
            os.close(self.open(path, flags))
        except OSError:
            return False
        return True

    def scan(self, path: str) -> "list[tuple[str, bool, int]]":
        """(name, whether it is a folder, bytes) of a folder's entries by name; links are not followed."""
        handle = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self._as_owner(), os.scandir(handle) as entries:
                return sorted(
                    (
                        entry.name,
                        entry.is_dir(follow_symlinks=False),
                        entry.stat(follow_symlinks=False).st_size,
                    )
                    for entry in entries
                )
        finally:
            os.close(handle)


def _size_of_regular(handle: int, path: str) -> int:
    """Bytes of an open regular file. Raises IsADirectoryError for all else."""
    there = os.fstat(handle)
    if not stat.S_ISREG(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, "no regular file", path)
    return there.st_size


class FilesByName(FilesInside):
    """Looks at a name as the user, then opens that name as the agent. For tests alone: it can be misled."""

    def read(self, path: str) -> bytes:
        looked = self.open(path, LOOK)
        try:
            _size_of_regular(looked, path)
        finally:
            os.close(looked)
        owner, self._owner = self._owner, None
        try:
            handle = self.open(path, os.O_RDONLY)
        finally:
            self._owner = owner
        with os.fdopen(handle, "rb") as file:
            return file.read(MAX_FILE_BYTES)
