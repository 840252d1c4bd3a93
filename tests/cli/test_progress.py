import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pointmend.cli.progress import progress_bar, stage_bar
from pointmend.cluster.run import Standing
from pointmend.denoising.algorithm import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def be_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a wide terminal in the place of stderr (a fixture's would be replaced by pytest's)."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return terminal


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar(quiet=False) as tell:
        assert tell is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(quiet=True) as tell:
        assert tell is None


def test_terminal_sees_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = be_terminal(monkeypatch)
    with progress_bar(quiet=False) as tell:
        assert tell is not None
        tell(Progress(done=3, total=10, step=1, steps=5))
    assert "step 2 of 5" in terminal.getvalue()
    assert "30 %" in terminal.getvalue()


def test_tiles_share_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = be_terminal(monkeypatch)
    with progress_bar(quiet=False) as tell:
        assert tell is not None
        tell(Progress(done=5, total=10, step=1, steps=5, region=2, regions=4))
    assert "tile 3 of 4, step 2 of 5" in terminal.getvalue()
    assert " 62 %" in terminal.getvalue()


def test_stages_tell_tiles_speed_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = be_terminal(monkeypatch)
    with stage_bar(quiet=False) as tell:
        tell(Standing("sorting", 1, 3))
    assert "sorting: 1 of 3 " in terminal.getvalue()
    with stage_bar(quiet=False) as tell:
        tell(Standing("sorting", 3, 3))
        tell(Standing("denoising", 2, 8, 300, 1200))
        tell(Standing("denoising", 3, 8, 480, 1200, 60.0))
    assert "denoising: 3 of 8 tiles, 60 points/s" in terminal.getvalue()
    assert " 40 %" in terminal.getvalue()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_bar_goes_to_stderr_and_results_to_stdout(scan: Path, model: str) -> None:
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "pointmend", "denoise", str(scan), "--model", model]
    done = subprocess.run(
        [*words, "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        timeout=120,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert done.returncode == 0
    assert b"loading the model" in seen
    assert done.stdout.startswith("points")
