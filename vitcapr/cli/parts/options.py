"""Options that several stages have: what they are called and what their help says."""

from pathlib import Path
from typing import Annotated

import typer

# Every stage.
Settings = Annotated[
    str,
    typer.Option("--settings", help="The stage's settings as JSON, or the path of a JSON file; {} for the defaults."),
]
Log = Annotated[Path | None, typer.Option("--log", help="A file that receives every line of progress.")]
Configfiles = Annotated[
    list[Path] | None,
    typer.Option("--configfile", help="An experiment's file, merged over config.yaml; may be given again."),
]

# Data sets and their words.
ManifestFile = Annotated[Path, typer.Option(help="manifest.json of the data set")]
VocabularyFile = Annotated[Path, typer.Option(help="vocabulary.json")]
TokensFile = Annotated[Path, typer.Option(help="tokens.npz, the captions as word numbers")]

# Stores.
BackboneSource = Annotated[
    str | None, typer.Option(help="Hub id or folder of the backbone; the settings' own if not given")
]
Features = Annotated[Path, typer.Option(help="Sealed manifest.json of the image features")]
RetrieverFeatures = Annotated[
    Path, typer.Option(help="Sealed manifest.json of the features the retriever was trained on")
]
Views = Annotated[
    list[Path] | None,
    typer.Option(
        "--view", help="Sealed manifest.json of a further view that the retriever looks at; may be given again."
    ),
]
Pixels = Annotated[Path, typer.Option(help="Sealed manifest.json of the pixel store")]
Sealed = Annotated[Path, typer.Argument(help="A sealed manifest.json, or the folder that holds it.")]
Arrays = Annotated[str | None, typer.Option(help="Only these arrays, with commas between.")]

# Models.
TrainingCode = Annotated[str, typer.Option(help="Hash of the stage's code; a state of other code is not continued")]
ModelFolder = Annotated[Path, typer.Option(help="Receives best.safetensors, card.json, history.csv, gpu.csv and last/")]
RetrieverFolder = Annotated[Path, typer.Option(help="Folder of the trained retriever")]
CaptionerVocabulary = Annotated[Path, typer.Option(help="vocabulary.json the captioner was trained with")]
RetrieverVocabulary = Annotated[Path, typer.Option(help="vocabulary.json the retriever was trained with")]
RetrieverTextEncoder = Annotated[
    str | None, typer.Option(help="Hub id or folder of the retriever's text encoder; its card's if left out")
]

# A person's own photographs and words.
NamedBackbone = Annotated[str | None, typer.Option(help="Hub id or folder of the backbone, if not found by its name.")]
OwnVocabulary = Annotated[Path | None, typer.Option(help="vocabulary.json, if not the experiment's own.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]

# Captions.
Captions = Annotated[Path, typer.Option(help="captions.json of the split")]
Candidates = Annotated[Path, typer.Option(help="captions.json of the split, with candidates")]
CaptionsOutput = Annotated[Path, typer.Option(help="captions.json to write")]
AttentionFile = Annotated[Path, typer.Option(help="attention.npz of the same decoding")]
CaptionedSplit = Annotated[str, typer.Option(help="The split that was captioned")]

# Embeddings.
SplitToEmbed = Annotated[str, typer.Option(help="The split to embed")]
EmbeddedSplit = Annotated[str, typer.Option(help="The split that was embedded")]
QueryBank = Annotated[Path, typer.Option(help="embeddings.npz of the training split, by the same model")]
CorrectedBy = Annotated[
    Path | None, typer.Option("--query-bank", help="embeddings.npz of the training split, to take hubness off scores")
]
BankWeight = Annotated[Path | None, typer.Option("--weight", help="weight.json of the query bank")]
EmbeddingsOutput = Annotated[Path, typer.Option(help="embeddings.npz to write")]

# Scores.
ModelName = Annotated[str, typer.Option(help="The model's name, for the tables")]
DecodingName = Annotated[str, typer.Option(help="The decoding's name, for the tables")]
MetricsOutput = Annotated[Path, typer.Option(help="metrics.json to write")]
RanksOutput = Annotated[Path, typer.Option(help="ranks.npz to write: the rank of each true match")]
WeightOutput = Annotated[Path, typer.Option(help="weight.json to write")]
Summary = Annotated[Path, typer.Argument(help="summary.csv")]
