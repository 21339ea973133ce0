"""Loads and stores of tensors of pointers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilepass.sim.elements import Element
from tilepass.sim.poison import PartialPoison, Poison, first_poison, require_defined
from tilepass.sim.state import Frame

UNMASKED = "an element that a load leaves undefined: masked off, and no value is given for it"


def gather(frame: Frame, pointers: Any, mask: Any, other: Any, element: Element) -> Any:
    """The elements of a tensor of pointers; the frame gives the state."""
    state = frame[0]
    mask = True if mask is None else require_defined(mask, "the mask of a load")
    addresses = require_defined(pointers, "the address of a load", mask)
    if mask is True or mask.all():
        values = state.effects.load(state.memory, np.ravel(addresses), element)
        return values.reshape(addresses.shape)
    loaded = state.effects.load(state.memory, addresses[mask], element)
    if other is None:
        values = np.zeros(addresses.shape, element.dtype)
        values[mask] = loaded
        return PartialPoison(values, ~mask, UNMASKED)
    if first_poison([other]) is not None:
        other = require_defined(other, "the value for masked-off elements", ~mask)
    values = np.array(np.broadcast_to(other, addresses.shape), element.dtype)
    values[mask] = loaded
    return values


def scatter(frame: Frame, pointers: Any, stored: Any, mask: Any, element: Element) -> None:
    """Write the elements of a tensor of pointers."""
    state = frame[0]
    mask = True if mask is None else require_defined(mask, "the mask of a store")
    addresses = require_defined(pointers, "the address of a store", mask)
    plain, poison = state.memory.storable(stored, mask)
    values = np.broadcast_to(plain, addresses.shape)
    chosen = slice(None) if mask is True else np.ravel(mask)
    if mask is True or mask.any():
        flat, wanted = np.ravel(addresses)[chosen], np.ravel(values)[chosen]
        state.effects.store(state.memory, flat, wanted, element)
        if poison is not None:
            wrong = np.broadcast_to(_which(poison), addresses.shape)
            state.memory.mark_poison(flat, np.ravel(wrong)[chosen], element, poison.cause)


def _which(poison: Poison | PartialPoison) -> Any:
    return poison.mask if type(poison) is PartialPoison else True
