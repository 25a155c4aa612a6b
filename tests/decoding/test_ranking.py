import torch
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.decoding.beam import top_k


@given(st.data())
def test_is_the_stable_sort(data):
    size = data.draw(st.sampled_from([1, 5, 63, 64, 65, 300, 1000]))
    k = data.draw(st.integers(1, min(size, 7)))
    draw = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    values = torch.randn(3, 2, size, generator=draw)
    if data.draw(st.booleans()):
        # Few distinct values, both zeros and minus infinity among them.
        values = values.round() * data.draw(st.sampled_from([1.0, -1.0]))
        values[values > 1] = -torch.inf
    ordered, order = values.sort(dim=-1, descending=True, stable=True)
    found, indices = top_k(values, k)
    assert torch.equal(found, ordered[..., :k])
    assert torch.equal(indices, order[..., :k])


def test_minus_infinity_everywhere_gives_real_indices():
    _, indices = top_k(torch.full((1, 130), -torch.inf), 2)
    assert indices.tolist() == [[0, 1]]
