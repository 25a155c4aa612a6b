"""Write a folder of pages in which the results of experiments are looked at, image by image."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.commands.program import typed
from vitcapr.errors import UserError
from vitcapr.formats.model import CARD
from vitcapr.hosts import names_this_machine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vitcapr.progress import Reporter
    from vitcapr.report.explorer.spaces import Embed


def main(
    results: Annotated[list[Path], typer.Argument(help="Folders of experiments, results/NAME, to show side by side.")],
    split: Annotated[str, typer.Option(help="The split whose images are shown.")] = "test",
    output: Annotated[
        Path | None,
        typer.Option(help="The folder to write; results/NAME/explorer by default."),
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed/--no-embed", help="Embed the captions of the systems with the retrievers.")
    ] = True,
    serve: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve the folder at this port of 127.0.0.1 until Ctrl-C; 0 for any."),
    ] = None,
) -> None:
    """Write a folder to explore all images of a split with captions, scores, attention and neighbours.

    Open its index.html in a browser. It needs no network.
    """
    from vitcapr.demo.claim_accuracy import claims_as_text
    from vitcapr.progress import Reporter, format_bytes
    from vitcapr.report.explorer.contents import Contents
    from vitcapr.report.explorer.results import Claim, read_results_of
    from vitcapr.report.explorer.writing import write_explorer

    def check_claims(caption: str, reference: str) -> list[Claim]:
        return [Claim(*claim) for claim in claims_as_text(caption, reference)]

    report = Reporter()
    embedder = (embedder_of(results, report),) if embed else ()
    contents = Contents([read_results_of(folder, split, check_claims) for folder in results], split, *embedder)
    folder = output or results[0] / "explorer"
    write_explorer(folder, contents, report)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder / 'index.html'}: {len(contents.gallery.images)} images, {format_bytes(size)}")
    if serve is not None:
        _serve(folder, serve)


def embedder_of(folders: Sequence[Path], report: "Reporter") -> "Embed":
    """Embeds texts with the retrievers of the experiments. A retriever that cannot be loaded is one line."""

    def embed(number: int, model: str, texts: Sequence[str]) -> "NDArray[np.float32] | None":
        from vitcapr.api.retriever import load_retriever

        retriever = folders[number] / "retrievers" / model
        if not (retriever / CARD).is_file():  # A fine-tuned dual encoder, or scores corrected with a query bank.
            return None
        try:
            return load_retriever(retriever, reporter=report).embed_texts(texts)
        except UserError as error:
            report.line(f"explore: the captions have no neighbours in {model}: {error}")
            return None

    return embed


class _Files(SimpleHTTPRequestHandler):
    """Files of one folder, for pages of this server only."""

    def send_head(self) -> Any:
        if names_this_machine(self.headers.get("Host", "")):
            return super().send_head()
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        return None

    def log_message(self, format: str, *arguments: object) -> None:
        """A line for each picture would hide the address."""


class _Server(ThreadingTCPServer):
    """Not HTTPServer, which asks a name server for the name of the machine."""

    allow_reuse_address = True
    daemon_threads = True


def server_of(folder: Path, port: int) -> ThreadingTCPServer:
    """A server of ``folder`` on the loopback address; port 0 for any that is free.

    Raises:
        UserError: the port is taken.
    """
    try:
        return _Server(("127.0.0.1", port), partial(_Files, directory=str(folder)))
    except OSError as error:
        what = f"the port {port} cannot be used: {error.strerror}"
        raise UserError(what, where="--serve", remedy="give another port, or 0 for any") from error


def _serve(folder: Path, port: int) -> None:
    with server_of(folder, port) as server, suppress(KeyboardInterrupt):
        print(f"http://127.0.0.1:{server.server_address[1]}/ until Ctrl-C", flush=True)
        server.serve_forever()


app = typed(main)
