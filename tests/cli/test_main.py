import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import pointmend
from pointmend.cli import denoise, parsing
from pointmend.cli.main import main

Run = Callable[..., tuple[int, str, str]]


def shell(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pointmend", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"pointmend {pointmend.__version__}\n", "")


def test_help_names_every_command(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for name in parsing.COMMANDS:
        assert f"pointmend {name} " in out
    assert run() == (0, out, "")


@pytest.mark.parametrize("name", list(parsing.COMMANDS))
def test_help_of_a_command_explains_every_option(run: Run, name: str) -> None:
    code, out, err = run(name, "--help")
    assert (code, err) == (0, "")
    for option in parsing.option_names(parsing.COMMANDS[name]):
        assert option in out


@pytest.mark.parametrize("words", [["--help"], ["denoise", "--help"], ["denoise", "x.foo"]])
def test_heavy_libraries_stay_out_until_needed(words: list[str]) -> None:
    code = (
        "import sys; from pointmend.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'torch', 'scipy', 'PIL', 'rich', 'viser'} & set(sys.modules);"
        "print(*sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == ""


def test_converting_does_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from pointmend.cli.main import main; assert main(sys.argv[1:]) == 0;"
        "assert 'torch' not in sys.modules"
    )
    source = tmp_path / "a.xyz"
    source.write_text("0 0 0\n1 0 0\n0 1 0\n")
    words = ["convert", str(source), str(tmp_path / "b.laz")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_is_quick() -> None:
    # 0.2 s on an idle machine; the best of three, because this one may be busy.
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert shell("--help").returncode == 0
        times.append(time.perf_counter() - start)
    assert min(times) < 1.5


def test_json_from_the_shell(scan: Path, model: str) -> None:
    done = shell("denoise", scan, "--model", model, "--steps", 1, "--json", "--threads", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["points"] == 300


def test_piped_run_shows_no_progress(scan: Path, model: str) -> None:
    done = shell("denoise", scan, "--model", model, "--steps", 1, "--threads", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "points",
        "noise",
        "moved",
        "held",
        "time",
        "written",
    ]


def test_bad_input_from_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "missing.ply"
    done = shell("denoise", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"pointmend: {path}: no such file\n"


def test_ctrl_c_from_the_shell(scan: Path, model: str) -> None:
    before = sorted(scan.parent.iterdir())
    # A suite that was started in the background has handed an ignored SIGINT down.
    code = (
        "import os, signal, sys, time; from pointmend import Denoiser;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from pointmend.cli.main import entry;"
        "wait = lambda *a, **k: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60));"
        "Denoiser.run = wait; entry()"
    )
    words = [sys.executable, "-c", code, "denoise", str(scan), "--model", model]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pointmend: interrupted\n")
    assert sorted(scan.parent.iterdir()) == before


def test_reader_that_leaves_early() -> None:
    assert hasattr(signal, "SIGPIPE")
    words = [sys.executable, "-m", "pointmend", "--version"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_message_with_line_breaks_stays_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("denoise", tmp_path / "two\nlines.ply")[2].count("\n") == 1

    def exhaust(self: denoise.Denoise) -> None:
        raise MemoryError

    monkeypatch.setattr(denoise.Denoise, "run", exhaust)
    code, out, err = run("denoise", "any.ply")
    assert (code, out) == (2, "")
    assert err.startswith("pointmend: not enough memory")


def test_our_own_mistakes_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def blunder(self: denoise.Denoise) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(denoise.Denoise, "run", blunder)
    with pytest.raises(ZeroDivisionError):
        main(["denoise", "any.ply"])
