import pytest
import torch
from torch import Tensor

from pointmend.geometry.symmetric import eigenvalues, eigenvector


def entries(matrix: Tensor) -> Tensor:
    """(M, 3, 3) -> (6, M)."""
    return matrix[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].T.contiguous()


@pytest.mark.parametrize("squash", [(1e-3, 1e-2, 2e-2), (1.0, 1.0, 1.0), (1e-2, 1.0, 3.0)])
def test_closed_form_agrees_with_lapack(squash: tuple[float, float, float]) -> None:
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(500, 3, 3, dtype=torch.float64, generator=generator)
    root = root * torch.tensor(squash, dtype=torch.float64)
    matrix = root.transpose(1, 2) @ root
    values, vectors = torch.linalg.eigh(matrix)
    found = eigenvalues(entries(matrix))
    # The arc cosine near one keeps half the digits; planes need three.
    assert ((found.T - values).abs() <= 1e-7 * values[:, 2:]).all()
    for which in (0, 2):
        vector = eigenvector(entries(matrix), found[which]).T
        cosine = (vector * vectors[:, :, which]).sum(1)
        assert torch.allclose(cosine.abs(), torch.ones(500).double())


def test_degenerate_matrices_still_give_unit_vectors() -> None:
    matrix = torch.stack([torch.zeros(3, 3), torch.eye(3), torch.diag(torch.tensor([1.0, 0, 0]))])
    six = entries(matrix.double())
    values = eigenvalues(six)
    vector = eigenvector(six, values[0])
    assert torch.allclose(vector.norm(dim=0), torch.ones(3).double())
    assert torch.allclose(values[:, 2], torch.tensor([0.0, 0, 1.0]).double(), atol=1e-7)
