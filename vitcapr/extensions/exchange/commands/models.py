"""Publish trained models, and fetch published ones."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.api.published_model import pull_model
from vitcapr.commands.main import typer_group
from vitcapr.experiment.copies import record_copy
from vitcapr.extensions.exchange.model_pushing import push_model, read_page
from vitcapr.formats.model import CARD
from vitcapr.progress import Reporter, print_lines
from vitcapr.store.remote_folder import RemoteFolder

app = typer_group(__doc__)

Model = Annotated[Path, typer.Argument(help="Folder of a captioner or a retriever: results/NAME/captioners/NAME.")]
Url = Annotated[str, typer.Argument(help="A folder, hf://OWNER/NAME, sftp://HOST/PATH, s3://BUCKET/PATH, ...")]


@app.command()
def push(model: Model, url: Url) -> None:
    """Publish a model: its weights, what it needs of its experiment, and a page with its scores. No code."""
    place, report = RemoteFolder(url), Reporter()
    record_copy(model / CARD, place.url, push_model(model, place, report), report.line)
    print_lines(f"published at {url}")


@app.command()
def pull(url: Url, folder: Annotated[Path, typer.Argument(help="The folder to copy it to.")]) -> None:
    """Fetch a published model. Every file is compared with its digest."""
    print_lines(f"the model is in {pull_model(RemoteFolder(url), folder, Reporter())}")


@app.command()
def page(model: Model) -> None:
    """Print the page of a model: scores with intervals and protocol, data set, backbone, use."""
    print_lines(read_page(model).rstrip("\n"))
