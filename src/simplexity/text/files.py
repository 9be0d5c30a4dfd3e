"""Text files: read line by line, written whole or not at all.

Plain, .gz and .xz are handled alike. Nothing here keeps more than one line in memory.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import IO, TextIO, cast

from simplexity.errors import SimplexityError

PART = (".simplexity-", ".part")
BOM = b"\xef\xbb\xbf"
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def open_text(path: Path | None) -> Iterator[Iterator[str]]:
    """The lines of a file without their ends; None or "-" is standard input.

    Only \\n ends a line; one \\r before it is dropped, and so is a byte-order mark at the start.
    """
    with ExitStack() as stack:
        if path is None or str(path) == "-":
            yield _decode(sys.stdin.buffer, named(path))
        else:
            yield _decode(_open_bytes(path, stack), named(path))


def named(path: Path | None) -> str:
    """How errors call a file that is read."""
    return "standard input" if path is None or str(path) == "-" else str(path)


def read_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file, read as they are asked for; see `open_text`."""
    with open_text(path) as lines:
        yield from lines


def _open_bytes(path: Path, stack: ExitStack) -> IO[bytes]:
    """A byte stream of what the file holds, unpacked; its first bytes or its suffix say how."""
    try:
        raw = stack.enter_context(path.open("rb"))
        start = raw.peek(6)
    except OSError as error:
        raise _unreadable(path, error) from error
    packed = next((kind for kind, magic in MAGIC.items() if start.startswith(magic)), path.suffix)
    if packed == ".gz":
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb"))
        return cast(IO[bytes], unpacked)
    if packed == ".xz":
        return stack.enter_context(lzma.LZMAFile(raw))
    return raw


def _decode(stream: IO[bytes], name: str) -> Iterator[str]:
    number = 1
    line = _next_line(stream, name).removeprefix(BOM)
    while line:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SimplexityError(
                f"{name}, line {number}: byte {error.start + 1} of the line is not valid UTF-8; "
                "convert the text to UTF-8"
            ) from error
        yield text.removesuffix("\n").removesuffix("\r")
        number += 1
        line = _next_line(stream, name)


def _next_line(stream: IO[bytes], name: str) -> bytes:
    try:
        return stream.readline()
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise SimplexityError(
            f"{name} is truncated or damaged and cannot be unpacked; make or fetch it again"
        ) from error
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(path: Path | str, error: OSError) -> SimplexityError:
    match error:
        case FileNotFoundError():
            return SimplexityError(f"{path} does not exist; check the name")
        case IsADirectoryError():
            return SimplexityError(f"{path} is a directory; name a file")
        case PermissionError():
            return SimplexityError(f"{path} may not be read; check its permissions")
        case _:
            return SimplexityError(f"{path} cannot be read: {error.strerror}")


@contextmanager
def writing(path: Path | None, overwrite: bool = False) -> Iterator[TextIO]:
    """A text handle whose file appears, complete, only if the block ends without an error.

    None or "-" is standard output. A name that ends in .gz or .xz is packed, without a time stamp,
    so that equal text gives equal bytes.
    """
    if path is None or str(path) == "-":
        with _full_disk_explained("standard output"):
            yield sys.stdout
            sys.stdout.flush()
    else:
        with writing_bytes(path, overwrite) as raw, ExitStack() as stack:
            packer = _packer(raw, path.suffix, stack)
            text = TextIOWrapper(cast(BufferedReader, packer), encoding="utf-8", newline="\n")
            yield text
            text.flush()
            text.detach()  # closing is left to whoever opened: the file has yet to be synced


@contextmanager
def writing_bytes(path: Path, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A binary handle with the promise of `writing`; devices and pipes are written as they are."""
    target = Path(os.path.realpath(path))
    with _full_disk_explained(str(path)):
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with path.open("wb") as device:
                yield device
            return
        _check_target(path, target, overwrite)
        part = target.with_name(f"{PART[0]}{secrets.token_hex(6)}{PART[1]}")
        try:
            with _create(part, path) as raw:
                yield raw
                raw.flush()
                os.fsync(raw.fileno())
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def is_part(path: Path) -> bool:
    """Whether this is a file that `writing` had not finished when the process was killed."""
    return path.name.startswith(PART[0]) and path.name.endswith(PART[1])


def _check_target(path: Path, target: Path, overwrite: bool) -> None:
    if os.path.isdir(target):
        raise SimplexityError(f"{path} is a directory; name a file")
    if os.path.exists(target) and not overwrite:
        raise SimplexityError(f"{path} exists; choose another name or pass --overwrite")
    if not os.path.isdir(target.parent):
        raise SimplexityError(f"{path} cannot be written: make the folder {path.parent} first")


def _create(part: Path, path: Path) -> IO[bytes]:
    try:
        return part.open("xb")
    except OSError as error:
        if error.errno in FULL:
            raise
        raise SimplexityError(
            f"{path} cannot be written: {error.strerror}; choose another folder"
        ) from error


def _packer(raw: IO[bytes], suffix: str, stack: ExitStack) -> IO[bytes]:
    if suffix == ".gz":
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        return cast(IO[bytes], stack.enter_context(packed))
    if suffix == ".xz":
        return stack.enter_context(lzma.LZMAFile(raw, "wb"))
    return raw


@contextmanager
def _full_disk_explained(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise SimplexityError(
            f"{name} could not be written, no space is left; free some and run again"
        ) from error
