"""What a closed mesh has to fulfil."""

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.meshes import Mesh


def directed_edges(mesh: Mesh) -> NDArray[np.int64]:
    """(3 F, 2) as the faces walk them."""
    return np.concatenate([mesh.faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])


def volume_if_closed(mesh: Mesh) -> float:
    """The volume, positive when faces look outwards; fails when the mesh is not closed."""
    directed = directed_edges(mesh)
    # Closed and consistently oriented: each edge is walked once in either direction.
    assert len(np.unique(directed, axis=0)) == len(directed)
    forth = directed[np.lexsort(directed.T)]
    back = directed[:, ::-1]
    np.testing.assert_array_equal(forth, back[np.lexsort(back.T)])
    corners = mesh.corners
    return float(np.einsum("fi,fi->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)
