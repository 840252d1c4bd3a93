import pytest
import torch

from pointmend.network.edges import EdgeConvolution, feature_graph, neighbour_max


@pytest.mark.parametrize(
    ("rows", "queries", "k"), [(50, 50, 4), (3000, 2500, 7), (60, 9, 40), (5, 9, 1)]
)
def test_neighbour_max_and_its_gradient_agree_with_gathering(
    rows: int, queries: int, k: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(rows, 6, generator=generator, requires_grad=True)
    index = torch.stack([torch.randperm(rows, generator=generator)[:k] for _ in range(queries)])
    weight = torch.randn(queries, 6, generator=generator)
    ours = neighbour_max(table, index)
    (gradient,) = torch.autograd.grad((ours * weight).sum(), table)
    naive = table[index].amax(dim=1)
    (expected,) = torch.autograd.grad((naive * weight).sum(), table)
    assert torch.equal(ours, naive)
    assert torch.allclose(gradient, expected, atol=1e-5)
    assert torch.equal(neighbour_max(table.detach(), index), naive)


def test_a_neighbour_may_win_by_less_than_the_bits_its_place_takes() -> None:
    table = torch.tensor([[1.0], [1.0 + 2**-23], [-1.0]], requires_grad=True)
    ours = neighbour_max(table, torch.tensor([[0, 1, 2]]))
    assert torch.allclose(ours, torch.ones(1, 1), rtol=2**-20)
    (gradient,) = torch.autograd.grad(ours.sum(), table)
    assert gradient[:2].sum() == 1.0


def test_equal_neighbours_share_one_gradient() -> None:
    table = torch.ones(3, 1, requires_grad=True)
    total = neighbour_max(table, torch.tensor([[0, 1, 2]])).sum()
    (gradient,) = torch.autograd.grad(total, table)
    assert gradient.sum() == 1.0


def test_the_edge_convolution_is_the_maximum_over_edges() -> None:
    torch.manual_seed(0)
    convolution = EdgeConvolution(5, 8)
    x, index = torch.randn(40, 5), torch.randint(0, 40, (40, 6))
    edges = convolution.centre(x)[:, None] + convolution.edge(x[index] - x[:, None])
    assert torch.allclose(convolution(x, index), edges.amax(dim=1), atol=1e-5)


def test_the_dynamic_graph_of_whole_patches_is_brute_force_without_oneself() -> None:
    x = torch.randn(2 * 30, 7, generator=torch.Generator().manual_seed(1))
    graph = feature_graph(x, 4, 30)
    for patch in range(2):
        part = x[30 * patch : 30 * patch + 30]
        distance = torch.cdist(part, part).fill_diagonal_(torch.inf)
        expected = distance.topk(4, largest=False).indices + 30 * patch
        found = graph[30 * patch : 30 * patch + 30]
        assert torch.equal(found.sort(dim=1).values, expected.sort(dim=1).values)


def test_the_dynamic_graph_among_candidates_takes_the_most_similar() -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(600, 12, generator=generator)
    others = torch.stack([torch.randperm(600, generator=generator)[:20] for _ in range(600)])
    candidates = torch.cat([torch.arange(600)[:, None], others], dim=1)
    graph = feature_graph(x, 5, 600, candidates)
    distance = (x[:, None] - x[others]).square().sum(-1)
    expected = others.gather(1, distance.topk(5, largest=False).indices)
    assert torch.equal(graph.sort(dim=1).values, expected.sort(dim=1).values)
