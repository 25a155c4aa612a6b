"""Mixed pairs: an image and its captions move by the same share towards the same other image and its captions."""

import torch

from vitcapr.batches.pairs import PairBatch
from vitcapr.training.retriever_task import mix

COUNTS = torch.tensor([2, 1, 3])
INDEX = torch.repeat_interleave(torch.arange(3), COUNTS)


def batch() -> PairBatch:
    """Image b is the b-th unit vector, as are its captions in the first axes; the others tell captions apart."""
    texts = torch.cat([torch.eye(3)[INDEX], torch.eye(6)], dim=1).half()
    return PairBatch({"cls": torch.eye(3).half()}, texts, INDEX, torch.arange(3))


def test_captions_follow_their_image() -> None:
    torch.manual_seed(0)
    moved = 0
    for _ in range(20):
        mixed = mix(batch(), 0.5)
        images = mixed.features["cls"]
        assert images.dtype == mixed.texts.dtype == torch.float32
        torch.testing.assert_close(mixed.texts[:, :3], images[INDEX])
        torch.testing.assert_close(images.sum(1), torch.ones(3))
        torch.testing.assert_close(mixed.texts[:, 3:].sum(1), torch.ones(6))
        assert (images.argmax(1) == torch.arange(3)).all(), "the larger share stays"
        shares = {round(float(share), 5) for share in images.amax(1) if share < 1}
        assert len(shares) <= 1, "one share a batch"
        moved += len(shares)
        assert torch.equal(mixed.image_index, INDEX)
    assert moved > 10


def test_a_caption_meets_the_one_in_its_place_counted_round() -> None:
    torch.manual_seed(0)
    begin = [0, 2, 3]
    for _ in range(30):
        mixed = mix(batch(), 1.0)
        for caption, row in enumerate(mixed.texts):
            own = int(INDEX[caption])
            strange = row[:3].clone()
            strange[own] = 0
            if strange.max() > 0:
                other = int(strange.argmax())
                place = begin[other] + (caption - begin[own]) % int(COUNTS[other])
                assert row[3 + place] == strange.max()


def test_the_same_random_state_mixes_the_same() -> None:
    state = torch.get_rng_state()
    first = mix(batch(), 0.3)
    torch.set_rng_state(state)
    again = mix(batch(), 0.3)
    assert torch.equal(first.texts, again.texts)
    assert torch.equal(first.features["cls"], again.features["cls"])
