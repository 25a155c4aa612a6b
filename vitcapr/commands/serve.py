"""Caption photographs in the browser, on a page of this machine."""

from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from vitcapr.api.captioner import load_captioner
from vitcapr.commands.main import Backbone, BeamSize, Decoding, Device, LengthPenalty, NBest, typer_app


def main(
    captioner: Annotated[Path, typer.Argument(help="Folder of the trained captioner, or of an experiment with one.")],
    retriever: Annotated[
        Path | None, typer.Option(help="Folder of a trained retriever: show the nearest captions of its data set.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any other address exposes the server.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free one.")] = 8000,
    decoding: Decoding = None,
    n_best: NBest = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    device: Device = "auto",
    backbone: Backbone = None,
) -> None:
    """Serve a page on which one drops a photograph and sees its caption, until Ctrl-C or SIGTERM.

    The page shows where the captioner looked for each word and, with a retriever, the nearest captions of its data
    set. POST /caption answers a picture with the same as JSON. Photographs are not stored.
    """
    from vitcapr.api.retriever import load_retriever
    from vitcapr.commands.caption_page import HEADERS, CaptionPage
    from vitcapr.commands.web import PageServer, until_stopped
    from vitcapr.progress import Reporter

    reporter = Reporter()
    with until_stopped():
        opened = load_captioner(
            captioner,
            decoding=decoding,
            n_best=n_best,
            beam_size=beam_size,
            length_penalty=length_penalty,
            device=device,
            backbone=backbone,
        )
        searched = None
        if retriever is not None:
            searched = load_retriever(retriever, device=opened.device, backbone=opened.backbone, reporter=reporter)
        page = CaptionPage(opened, searched)
        server = PageServer(page.routes, host, port, HEADERS)
        page.answer(Image.new("RGB", (64, 64), "grey"))  # Loads everything before the first photograph.
        if host not in ("localhost", "::1") and not host.startswith("127."):
            reporter.line("everybody who reaches this machine can use the page")
        print(f"{server.url} captions photographs; Ctrl-C stops it", flush=True)
        server.run()
    print("stopped")


app = typer_app(main)
