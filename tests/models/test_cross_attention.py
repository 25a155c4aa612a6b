import pytest
import torch

from vitcapr.models.cross_attention import CrossEncoder, CrossLayer, SelfAttention


def encoder(**options: int) -> CrossEncoder:
    torch.manual_seed(0)
    sizes = {"feature_dim": 6, "text_dim": 5, "vocabulary": 9, "max_length": 8, "width": 8, "heads": 2, "layers": 2}
    return CrossEncoder(**{**sizes, **options}, grid=(3, 4)).eval()


TOKENS = torch.tensor([[1, 4, 5, 2, 0, 0], [1, 3, 2, 0, 0, 0], [1, 6, 7, 8, 3, 2]])


def test_pairs_do_not_know_of_one_another() -> None:
    """An image with all captions at once gives what each pair alone gives, whatever the padding."""
    model = encoder()
    patches, cls, features = torch.randn(2, 12, 6), torch.randn(2, 6), torch.randn(3, 5)
    reading = model.understand(TOKENS, features)
    memory = model.remember(patches, cls)
    together = model.match(memory, reading.states.expand(2, -1, -1, -1), reading.real.expand(2, -1, -1))
    assert together.shape == (2, 3)
    for image in range(2):
        for caption in range(3):
            length = int((TOKENS[caption] != 0).sum())
            alone = model.understand(TOKENS[[caption], :length], features[[caption]])
            seen = model.remember(patches[[image]], cls[[image]])
            logit = model.match(seen, alone.states[None], alone.real[None])
            assert logit.item() == pytest.approx(together[image, caption].item(), abs=1e-5)
            torch.testing.assert_close(seen.layers[0][0], memory.of(slice(image, image + 1)).layers[0][0])


def test_without_text_features_words_alone_are_read() -> None:
    torch.manual_seed(0)
    model = CrossEncoder(6, None, 9, 8, (3, 4), width=8, heads=2).eval()
    reading = model.understand(TOKENS, None)
    assert reading.states.shape == (3, 6, 8)
    assert torch.equal(reading.real, TOKENS != 0)


def test_squares_of_patches_are_averaged_up_to_the_cut_edge() -> None:
    """3 x 4 patches by squares of two: two squares in the upper row, and in the lower two halves."""
    model = encoder(pool=2, layers=1)
    patches = torch.randn(1, 12, 6)
    grid = patches[0].view(3, 4, 6)
    squares = [grid[:2, :2].mean((0, 1)), grid[:2, 2:].mean((0, 1)), grid[2, :2].mean(0), grid[2, 2:].mean(0)]
    plain = encoder(pool=1, layers=1)
    expected = plain.remember(torch.stack(squares)[None], torch.zeros(1, 6))
    for found, wanted in zip(model.remember(patches, torch.zeros(1, 6)).layers[0], expected.layers[0], strict=True):
        torch.testing.assert_close(found, wanted)


def test_attention_is_the_textbooks() -> None:
    torch.manual_seed(0)
    layer = CrossLayer(4, 1, 0.0).eval()
    states, seen = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    keys, values = layer.remember(seen)
    queries = layer.ask(layer.norm(states))
    weights = (queries @ keys[:, 0].transpose(1, 2) / 2).softmax(dim=2)
    expected = states + layer.outward(weights @ values[:, 0])
    torch.testing.assert_close(layer(states, keys, values), expected + layer.perceptron(expected))


def test_padding_is_not_looked_at() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(4, 2, 0.0).eval()
    states = torch.randn(1, 4, 4)
    real = torch.tensor([[True, True, False, False]])
    torch.testing.assert_close(layer(states, real)[:, :2], layer(states[:, :2], real[:, :2]))
