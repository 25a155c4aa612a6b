import io

from PIL import Image

from vitcapr.retrieval.page import ShownCaption, ShownImage, results_page, thumbnail


def test_a_thumbnail_keeps_its_shape_and_drops_the_rest() -> None:
    picture = Image.new("RGB", (1000, 500), (200, 30, 30))
    picture.info = {"exif": b"x" * 60_000, "icc_profile": b"y" * 60_000}
    content = thumbnail(picture)
    with Image.open(io.BytesIO(content)) as small:
        assert (small.format, small.size) == ("JPEG", (320, 160))
    assert len(content) < 5_000
    with Image.open(io.BytesIO(thumbnail(Image.new("RGB", (30, 20))))) as small:
        assert small.size == (30, 20)


def test_nothing_from_outside_is_taken_for_markup() -> None:
    nasty = '<script>alert("x")</script>'
    page = results_page(nasty, None, [ShownImage(0.5, nasty, nasty, None)], [ShownCaption(0.25, nasty, nasty)], nasty)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 7
    assert "1. 0.500" in page
    assert "no picture" in page
