"""The kinds of files and folders that stages read and write, without the code that reads them.

``Annotated[Path, help, files]``: the help is the text of every option that takes a path of this kind; of a folder, the
files that a rule must list.
"""

from pathlib import Path
from typing import Annotated

# Data sets and text.

ManifestFile = Annotated[Path, "manifest.json of the data set"]
DATA_FILES = ("manifest.json", "images.parquet", "captions.parquet", "rejected.csv")
DataFolder = Annotated[Path, "Folder for the manifest and its tables", DATA_FILES]
PairsFolder = Annotated[
    Path,
    "Folder for the manifest, its tables, the pairs before cleaning and the pools of queries",
    (*DATA_FILES, "pairs.parquet", "pairs.json", "pools.npz", "cleaning.json"),
]
PairsFile = Annotated[Path, "pairs.parquet: the pairs before cleaning their texts"]
CleaningFile = Annotated[Path, "cleaning.json: what was removed from the texts"]
PoolsFile = Annotated[Path, "pools.npz: the held-out queries and their candidates"]
VocabularyFile = Annotated[Path, "vocabulary.json"]
TokensFile = Annotated[Path, "tokens.npz: the captions as word numbers"]
TagsFile = Annotated[Path, "tags.npz: parts of speech, for text towers that embed them"]
TagsCard = Annotated[Path, "tags.json: which tagger was used"]
WordVectorsFile = Annotated[Path, "vectors.npy: word vectors that initialise an embedding"]
CoverageFile = Annotated[Path, "coverage.json: which words have a vector"]
TokenizerFile = Annotated[Path, "tokenizer.json: a WordPiece tokenizer"]
ParaphrasesFolder = Annotated[
    Path, "Folder of the paraphrases that METEOR uses for the references of a split", ("card.json", "table.gz")
]

# Stores.

FeaturesFile = Annotated[Path, "Sealed manifest.json of image features"]
TextFeaturesFile = Annotated[Path, "Sealed manifest.json of text features"]
PixelsFile = Annotated[Path, "Sealed manifest.json of decoded pixels"]
StoreFile = Annotated[Path, "Sealed manifest.json of a store that was pulled or imported"]
SealedFile = Annotated[Path, "Sealed manifest.json of a store"]
PartFile = Annotated[Path, "part.json: the chunks of one extraction task"]

# Models.

BACKBONE_FILES = ("config.json", "model.safetensors", "preprocessor_config.json")
BackboneFolder = Annotated[Path, "Folder of a backbone in transformers' format", BACKBONE_FILES]
TrainedBackboneFolder = Annotated[
    Path,
    "Folder for the weights, the preprocessing and the history of the ViT that the workflow trains",
    (*BACKBONE_FILES, "history.csv"),
]
MODEL_FILES = ("best.safetensors", "card.json")
ModelFolder = Annotated[Path, "Folder of a trained model", MODEL_FILES]
TRAINING_FILES = (*MODEL_FILES, "history.csv", "gpu.csv")
TrainingFolder = Annotated[Path, "Folder for the best weights, their card, the history and the GPU use", TRAINING_FILES]
RetrieverTrainingFolder = Annotated[
    Path,
    "Folder for the best weights, their card, the history, the GPU use and the learning-rate sweep",
    (*TRAINING_FILES, "sweep.csv"),
]
DUAL_ENCODER_FILES = (*MODEL_FILES, "readers.json")
DualEncoderFolder = Annotated[
    Path, "Folder of a fine-tuned dual encoder and of the tokenizers of its text towers", DUAL_ENCODER_FILES
]
DualEncoderTrainingFolder = Annotated[
    Path,
    "Folder for the best weights, their card, the tokenizers, the history, the GPU use and the learning-rate sweep",
    (*DUAL_ENCODER_FILES, "history.csv", "gpu.csv", "sweep.csv"),
]
CardFile = Annotated[Path, "card.json of a trained model"]
CHECKPOINT = "checkpoint"
"""The folder in the folder of a model from which a stopped training continues."""
HistoryFile = Annotated[Path, "history.csv of a training"]
GpuUseFile = Annotated[Path, "gpu.csv of a training"]

CheckedClaimsFile = Annotated[Path, "claims.json: the claims of each caption, and what is true of its image"]
PageSectionFile = Annotated[Path, "page_section.json: a section of the first page, with tables"]

# Captions.

CaptionsFile = Annotated[Path, "captions.json of a split"]
AttentionFile = Annotated[Path, "attention.npz: the attention at every word of these captions"]

# Embeddings.

EmbeddingsFile = Annotated[Path, "embeddings.npz of a split"]
QueryBankFile = Annotated[Path, "embeddings.npz of the training split, computed with the same model: the query bank"]
WeightFile = Annotated[Path, "weight.json: a weight selected on the validation split"]

# Scores.

MetricsFile = Annotated[Path, "metrics.json"]
PerImageFile = Annotated[Path, "per_image.parquet: the scores of every image"]
RanksFile = Annotated[Path, "ranks.npz: the retrieval rank of every positive"]
SummaryFile = Annotated[Path, "summary.csv: all scores of an experiment"]
ComparisonFile = Annotated[Path, "comparison.json: the paired differences of two systems"]
DifferencesFile = Annotated[Path, "differences.csv: the paired differences of all systems in their main scores"]
TableFile = Annotated[Path, "A table; its suffix gives the format: Markdown, LaTeX, CSV or JSON"]
FigureFile = Annotated[Path, "A figure; one file per format"]
PageFile = Annotated[Path, "A page in HTML"]
