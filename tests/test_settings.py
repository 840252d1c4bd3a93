from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pointmend.errors import InputError
from pointmend.settings import check_choices, check_keys


@dataclass
class Shop:
    colour: Literal["red", "blue"] = "red"
    size: int = 3
    scale: tuple[float, float] = (0.5, 1.5)
    open: bool = True
    price: float = 1.0


def test_good_values_pass() -> None:
    check_choices(Shop("blue", 0, price=2), "shop")
    check_keys(Shop, {"size": 3}, "shop")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colour": "green"}, "shop.colour is 'green'; choose one of red, blue"),
        ({"size": -1}, "shop.size is -1"),
        ({"size": 2.5}, "shop.size is 2.5"),
        ({"size": True}, "shop.size is True"),
        ({"price": "much"}, "shop.price is 'much'; a number is needed"),
        ({"price": True}, "shop.price is True"),
    ],
)
def test_other_values_are_named_with_what_is_allowed(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_choices(Shop(**values), "shop")


def test_unknown_keys_are_named() -> None:
    with pytest.raises(InputError, match="unknown shop setting: door, roof; known are colour, "):
        check_keys(Shop, {"roof": 1, "door": 2, "size": 3}, "shop")
