"""Reading line by line, and writing whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexity.errors import SimplexityError
from simplexity.text.files import open_text, read_lines, writing

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}
ADVICE = "exists; choose another name or pass --overwrite"


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"\xef\xbb\xbf", []),
        ("a\u2028b\x0bc\rd\n\u3000e\n".encode(), ["a\u2028b\x0bc\rd", "\u3000e"]),
    ],
)
def test_lines_end_at_newlines_only(
    tmp_path: Path, suffix: str, content: bytes, lines: list[str]
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACK[suffix](content))
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_packed_files_are_known_by_their_first_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "text.de"
    path.write_bytes(PACK[suffix](b"eins\n"))
    assert list(read_lines(path)) == ["eins"]


def test_a_line_is_given_before_the_next_one_is_read(tmp_path: Path) -> None:
    receive, send = os.pipe()
    with os.fdopen(send, "wb", buffering=0) as writer:
        writer.write(b"first\n")
        with open_text(Path(f"/dev/fd/{receive}")) as lines:
            os.close(receive)
            assert next(lines) == "first"
            writer.write(b"second\n")
            assert next(lines) == "second"


@pytest.mark.parametrize("name", [None, Path("-")])
def test_standard_input_is_read_and_left_open(
    monkeypatch: pytest.MonkeyPatch, name: Path | None
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("é\r\nb".encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_lines(name)) == ["é", "b"]
    assert not stdin.closed


@pytest.mark.parametrize("suffix", PACK)
def test_invalid_utf8_names_file_and_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACK[suffix](b"ok\nfine\ncaf\xe9\nlast\n"))
    lines = read_lines(path)
    assert [next(lines), next(lines)] == ["ok", "fine"]
    with pytest.raises(SimplexityError, match=rf"text{suffix}, line 3: byte 4 .* UTF-8"):
        next(lines)


def test_invalid_utf8_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    with pytest.raises(SimplexityError, match="standard input, line 1"):
        list(read_lines(None))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_truncated_file_gives_what_it_has_and_then_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    text = b"".join(b"%d\n" % (i * i) for i in range(50_000))
    path.write_bytes(PACK[suffix](text)[:-100])
    lines = read_lines(path)
    assert next(lines) == "0"
    with pytest.raises(SimplexityError, match="truncated or damaged"):
        list(lines)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("content", [b"plain text, wrongly named\n", b"\x1f\x8b\x08\x00junk"])
def test_what_cannot_be_unpacked_is_an_error(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(content)
    with pytest.raises(SimplexityError, match=r"text.* truncated or damaged"):
        list(read_lines(path))


def test_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    packed = bytearray(gzip.compress(os.urandom(2000).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(SimplexityError, match=r"text.gz"):
        list(read_lines(path))


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(SimplexityError, match="nowhere does not exist; check the name"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(SimplexityError, match="is a directory; name a file"):
        list(read_lines(tmp_path))


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",)))))
def test_written_lines_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    # Two things are the reader's to drop: a return before the newline, a mark at the very start.
    wanted = [line.removesuffix("\r") for line in lines]
    wanted[:1] = [line.removeprefix("\ufeff") for line in wanted[:1]]
    for suffix in PACK:
        path = tmp_path_factory.mktemp("text") / f"lines{suffix}"
        with writing(path) as file:
            file.writelines(f"{line}\n" for line in lines)
        assert list(read_lines(path)) == wanted


@pytest.mark.parametrize("suffix", PACK)
def test_equal_text_gives_equal_bytes_of_the_right_kind(tmp_path: Path, suffix: str) -> None:
    written = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}{suffix}"
        with writing(path) as file:
            file.write("a\nb\n")
        written.append(path.read_bytes())
    assert written[0] == written[1]
    unpack = {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress}[suffix]
    assert unpack(written[0]) == b"a\nb\n"


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with writing(path) as file:
        file.write("x" * 100_000)
        assert not path.exists()
    assert leftovers(tmp_path) == ["out"]


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failing_block_leaves_nothing_and_keeps_the_old_file(
    tmp_path: Path, suffix: str, failure: type[BaseException]
) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_text("old")

    def fail() -> None:
        with writing(path, overwrite=True) as file:
            file.write("x" * 100_000)
            raise failure

    with pytest.raises(failure):
        fail()
    assert leftovers(tmp_path) == [path.name]
    assert path.read_text() == "old"


def test_an_existing_file_is_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(SimplexityError, match=ADVICE), writing(path):
        raise AssertionError("the block must not run")
    assert path.read_text() == "old"
    with writing(path, overwrite=True) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_folders_that_cannot_take_the_file(tmp_path: Path) -> None:
    with pytest.raises(SimplexityError, match="is a directory; name a file"), writing(tmp_path):
        pass
    missing = tmp_path / "none" / "out"
    with pytest.raises(SimplexityError, match=r"make the folder .*none first"), writing(missing):
        pass


def test_a_link_is_written_through_and_rights_are_the_usual_ones(tmp_path: Path) -> None:
    path, link, usual = tmp_path / "out", tmp_path / "link", tmp_path / "usual"
    link.symlink_to(path)
    usual.touch()
    with writing(link) as file:
        file.write("text")
    assert link.is_symlink()
    assert path.read_text() == "text"
    assert path.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("name", [None, Path("-")])
def test_standard_output_is_written_and_left_open(
    capsys: pytest.CaptureFixture[str], name: Path | None
) -> None:
    for _ in range(2):
        with writing(name) as file:
            file.write("é\n")
    assert capsys.readouterr().out == "é\né\n"
    assert not sys.stdout.closed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_device_is_explained() -> None:
    with pytest.raises(SimplexityError, match="/dev/full could not be written, no space is left"):
        write_much(Path("/dev/full"))


def test_a_full_disk_is_explained_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SimplexityError, match="out could not be written, no space is left"):
        write_much(tmp_path / "out")
    assert leftovers(tmp_path) == []


def test_a_full_disk_behind_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SimplexityError, match="standard output could not be written"):
            write_much(None)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


def test_devices_and_pipes_are_written_without_asking() -> None:
    write_much(Path(os.devnull))
    assert not Path(os.devnull).is_file()
    receive, send = os.pipe()
    with writing(Path(f"/dev/fd/{send}")) as file:
        file.write("through the pipe")
    os.close(send)
    with os.fdopen(receive) as reader:
        assert reader.read() == "through the pipe"


def write_much(path: Path | None) -> None:
    with writing(path) as file:
        file.write("x" * 100_000)
