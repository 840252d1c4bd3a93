import pytest

from pointmend.errors import FileFormatError
from pointmend.viewer import uploads
from pointmend.viewer.uploads import Uploads, plain_name


def test_uploads_are_private_and_removed() -> None:
    kept = Uploads()
    try:
        one, two = kept.keep("a.ply", b"1"), kept.keep("a.ply", b"2")
        assert kept.folder.stat().st_mode & 0o777 == 0o700
        assert (one.name, one.read_bytes(), two.read_bytes()) == ("a.ply", b"1", b"2")
        assert kept.room_for("b.ply").parent.is_dir()
    finally:
        kept.close()
    assert not kept.folder.exists()


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("scan.ply", "scan.ply"),
        ("../../etc/passwd", "passwd"),
        ("C:\\scans\\mine.laz", "mine.laz"),
        ("a\x1b[31m\n\0.ply", "a__31m__.ply"),
        ("Zürich, Süd (2).e57", "Zürich, Süd (2).e57"),
        ("..", "scan"),
        ("", "scan"),
        ("x" * 500 + ".ply", "x" * 200 + ".ply"),
    ],
)
def test_names_are_made_harmless(name: str, plain: str) -> None:
    assert plain_name(name) == plain
    kept = Uploads()
    try:
        assert kept.keep(name, b"").parent.parent == kept.folder
    finally:
        kept.close()


def test_the_limit_is_kept_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_LIMIT", 2_000_000)
    kept = Uploads()
    try:
        kept.keep("fits.ply", b"0" * 2_000_000)
        with pytest.raises(FileFormatError, match=r"large.ply: 3 MB are more than the 2 MB"):
            kept.keep("large.ply", b"0" * 3_000_000)
        assert list(kept.folder.rglob("large.ply")) == []
    finally:
        kept.close()
