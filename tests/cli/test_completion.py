import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.cli.completion import SHELLS, options_of
from pointmend.cli.parsing import COMMANDS

Run = Callable[..., tuple[int, str, str]]

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")


def complete(script: str, words: list[str]) -> list[str]:
    """What bash offers when Tab is pressed after the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _pointmend;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@needs_bash
def test_bash_completes_what_was_begun(run: Run) -> None:
    code, script, err = run("--print-completion", "bash")
    assert (code, err) == (0, "")
    assert complete(script, ["pointmend", ""]) == [*COMMANDS, "--help", "--version"]
    assert complete(script, ["pointmend", "de"]) == ["denoise", "demo"]
    assert complete(script, ["pointmend", "denoise", "--str"]) == ["--strength"]
    assert complete(script, ["pointmend", "denoise", "--mode", "i"]) == ["independent"]
    assert complete(script, ["pointmend", "evaluate", "--benchmark", "P"]) == ["PUNet", "PCNet"]
    assert complete(script, ["pointmend", "reproduce", "lam"]) == ["lambda"]


@needs_bash
def test_files_are_left_to_the_shell(run: Run) -> None:
    script = run("--print-completion", "bash")[1]
    assert complete(script, ["pointmend", "denoise", "sc"]) == []
    assert complete(script, ["pointmend", "denoise", "scan.ply", ""]) == []
    assert "complete -o default " in script


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_of_every_command_is_offered(run: Run, shell: str) -> None:
    script = run("--print-completion", shell)[1]
    for name, command in COMMANDS.items():
        line = next(row for row in script.splitlines() if row.startswith(f"      {name}) "))
        for option in options_of(command):
            assert option.name in line


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(run("--print-completion", "zsh")[1])
    code = f"autoload -U compinit; compinit -D; source {tmp_path}/script; print $_comps[pointmend]"
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_pointmend" in done.stdout


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"]])
def test_another_shell_is_refused_in_one_line(run: Run, words: list[str]) -> None:
    code, out, err = run("--print-completion", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "choose one of bash, zsh" in err
