"""Command line: which files are meant, and where their results go."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from pointmend.errors import InputError


def expand(paths: Sequence[Path]) -> list[Path]:
    """The paths, with patterns such as tiles/*.laz replaced by what they match, in order."""
    if not paths:
        raise InputError("IN is missing: name at least one file")
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name files in it, such as {path / '*.laz'}")
        if path.exists() or not glob.has_magic(str(path)):
            found.append(path)
            continue
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
        if not matches:
            raise InputError(f"{path}: no file matches; check folder and pattern")
        found.extend(matches)
    return found


def pair_up(paths: Sequence[Path], out: str | None, word: str) -> list[tuple[Path, Path]]:
    """
    Inputs and the outputs they belong to.

    Two paths without `out` are an input and its output; otherwise all are inputs. Outputs go
    beside them as NAME.word.SUFFIX, into the folder `out`, or where the pattern `out` says, in
    which {stem}, {suffix} and {name} stand for parts of the input's name.

    Parameters
    ----------
    paths : as given.
    out : a folder, a file (for one input), a pattern, or None.
    word : what marks results.
    """
    if len(paths) == 2 and out is None:
        return [(expand(paths[:1])[0], paths[1])]
    inputs = expand(paths)
    pairs = [(path, _target(path, out, word, len(inputs))) for path in inputs]
    seen: dict[Path, Path] = {}
    for source, target in pairs:
        if target in seen:
            raise InputError(
                f"{seen[target]} and {source} would both be written to {target}; "
                "use {stem} in --out"
            )
        seen[target] = source
    return pairs


def _target(source: Path, out: str | None, word: str, count: int) -> Path:
    if out is None:
        return source.with_name(f"{source.stem}.{word}{source.suffix}")
    if "{" in out:
        try:
            return Path(out.format(stem=source.stem, suffix=source.suffix, name=source.name))
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(
                f"--out {out}: only {{stem}}, {{suffix}} and {{name}} can stand in braces"
            ) from error
    target = Path(out)
    if target.is_dir() or out.endswith((os.sep, "/")):
        return target / source.name
    if count > 1:
        raise InputError(f"--out {out}: for {count} inputs name a folder (it must exist)")
    return target


def make_folder(path: Path) -> None:
    """Make a folder for results, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file has that name" if path.is_file() else error.strerror
        raise InputError(
            f"cannot make the folder {path}: {reason}; name another with --out"
        ) from error


def check_output(source: Path, target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, a place where the result could not or must not go."""
    from pointmend.cloud.files import format_of

    for path in (source, target):
        format_of(path)
    if not target.parent.is_dir():
        raise InputError(f"{target}: folder {target.parent} does not exist; create it first")
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise InputError(f"{target} exists; add --overwrite to replace it, or name another file")
    same_name = os.path.abspath(source) == os.path.abspath(target)  # noqa: PTH100
    if source.exists() and target.exists() and source.samefile(target) and not same_name:
        raise InputError(f"{target} is another name of {source}; give that name to replace it")
