import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_it_serves_until_it_is_stopped(scan: Path, model: str, tmp_path: Path) -> None:
    words = ["view", str(scan), "--no-browser", "--model", model, "--threads", "1"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "pointmend", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = process.stdout.readline()
            address = said.removeprefix("pointmend view: ").strip()
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(address, timeout=20) as answer:
                assert b"<html" in answer.read()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
        assert process.stdout.read() == "Ctrl-C ends it.\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["missing.ply"], "missing.ply: no such file"),
        (["notes.docx"], "notes.docx: unknown suffix '.docx'"),
        (["--port", "99999"], "--port is 99999; it lies between 1 and 65535"),
        (["--reference", "missing.off"], "missing.off: no such file"),
        (["--model", "nonsense"], "no model named 'nonsense'"),
    ],
)
def test_mistakes_are_told_in_one_line(run: Run, words: list[str], line: str) -> None:
    code, out, err = run("view", "--no-browser", *words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_without_viser_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['viser'] = None; from pointmend.cli.main import main;"
        "sys.exit(main(['view', '--no-browser']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pointmend: the viewer needs viser; install it with: pip install 'pointmend[view]'\n"
    )
