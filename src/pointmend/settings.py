"""Typed settings: a value or a key that is not known is an error, never a silent default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from pointmend.errors import InputError


def check_choices(settings: Any, room: str) -> None:
    """
    Refuse values that their types do not allow.

    Parameters
    ----------
    settings : a dataclass; its Literal fields take one of their words, its int fields whole
        numbers of at least 0, its float fields numbers.
    room : the word in front of a setting's name in messages.
    """
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        value, allowed = getattr(settings, field.name), get_args(hints[field.name])
        name = f"{room}.{field.name}"
        if allowed and all(isinstance(word, str) for word in allowed) and value not in allowed:
            raise InputError(f"{name} is {value!r}; choose one of {', '.join(allowed)}")
        if hints[field.name] is int and (type(value) is not int or value < 0):
            raise InputError(f"{name} is {value!r}; a whole number of at least 0 is needed")
        if hints[field.name] is float and type(value) not in (int, float):
            raise InputError(f"{name} is {value!r}; a number is needed")


def check_keys(kind: Any, values: Mapping[str, Any], room: str) -> None:
    """Refuse plain values whose keys are no fields of the dataclass `kind`."""
    known = sorted(field.name for field in fields(kind))
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(
            f"unknown {room} setting: {', '.join(unknown)}; known are {', '.join(known)}"
        )
