"""The kinds of files and folders that stages read and write, without the code that reads them.

The docstring of a kind is the help text of every option that takes a path of this kind.
"""

from typing import ClassVar


class Artefact:
    """A file."""

    files: ClassVar[tuple[str, ...]] = ()
    """The files in a folder that a rule must list; empty for a file."""


# Data sets and text.


class ManifestFile(Artefact):
    """manifest.json of the data set"""


class CroissantFile(Artefact):
    """croissant.json: the data set for other programs"""


class DataFolder(Artefact):
    """Folder for the manifest and its tables"""

    files = ("manifest.json", "images.parquet", "captions.parquet", "rejected.csv")


class PairsFolder(Artefact):
    """Folder for the manifest, its tables, the pairs before cleaning and the pools of queries"""

    files = (*DataFolder.files, "pairs.parquet", "pairs.json", "pools.npz", "cleaning.json")


class PairsFile(Artefact):
    """pairs.parquet: the pairs before cleaning their texts"""


class CleaningFile(Artefact):
    """cleaning.json: what was removed from the texts"""


class ClaimsFile(Artefact):
    """claims.json: a paper's claims about its preprocessing, and the measured values"""


class PoolsFile(Artefact):
    """pools.npz: the held-out queries and their candidates"""


class VocabularyFile(Artefact):
    """vocabulary.json"""


class TokensFile(Artefact):
    """tokens.npz: the captions as word numbers"""


class TagsFile(Artefact):
    """tags.npz: parts of speech, for text towers that embed them"""


class TagsCard(Artefact):
    """tags.json: which tagger was used"""


class WordVectorsFile(Artefact):
    """vectors.npy: word vectors that initialise an embedding"""


class CoverageFile(Artefact):
    """coverage.json: which words have a vector"""


class TokenizerFile(Artefact):
    """tokenizer.json: a WordPiece tokenizer"""


class ParaphrasesFolder(Artefact):
    """Folder of the paraphrases that METEOR uses for the references of a split"""

    files = ("card.json", "table.gz")


# Stores.


class FeaturesFile(Artefact):
    """Sealed manifest.json of image features"""


class TextFeaturesFile(Artefact):
    """Sealed manifest.json of text features"""


class PixelsFile(Artefact):
    """Sealed manifest.json of decoded pixels"""


class StoreFile(Artefact):
    """Sealed manifest.json of a store that was pulled or imported"""


class SealedFile(Artefact):
    """Sealed manifest.json of a store"""


class ExportedFile(Artefact):
    """File of another program: features.h5 or features.npz"""


class PartFile(Artefact):
    """part.json: the chunks of one extraction task"""


# Models.


class BackboneFolder(Artefact):
    """Folder of a backbone in transformers' format"""

    files = ("config.json", "model.safetensors", "preprocessor_config.json")


class TrainedBackboneFolder(Artefact):
    """Folder for the weights, the preprocessing and the history of the ViT that the workflow trains"""

    files = (*BackboneFolder.files, "history.csv")


class ModelFolder(Artefact):
    """Folder of a trained model"""

    files = ("best.safetensors", "card.json")


class TrainingFolder(Artefact):
    """Folder for the best weights, their card, the history and the GPU use"""

    files = (*ModelFolder.files, "history.csv", "gpu.csv")


class RetrieverTrainingFolder(Artefact):
    """Folder for the best weights, their card, the history, the GPU use and the learning-rate sweep"""

    files = (*TrainingFolder.files, "sweep.csv")


class DualEncoderFolder(Artefact):
    """Folder of a fine-tuned dual encoder and of the tokenizers of its text towers"""

    files = (*ModelFolder.files, "readers.json")


class DualEncoderTrainingFolder(Artefact):
    """Folder for the best weights, their card, the tokenizers, the history, the GPU use and the learning-rate sweep"""

    files = (*DualEncoderFolder.files, "history.csv", "gpu.csv", "sweep.csv")


class CardFile(Artefact):
    """card.json of a trained model"""


class HistoryFile(Artefact):
    """history.csv of a training"""


class GpuUseFile(Artefact):
    """gpu.csv of a training"""


# Captions.


class CaptionsFile(Artefact):
    """captions.json of a split"""


class AttentionFile(Artefact):
    """attention.npz: the attention at every word of these captions"""


# Embeddings.


class EmbeddingsFile(Artefact):
    """embeddings.npz of a split"""


class QueryBankFile(Artefact):
    """embeddings.npz of the training split, computed with the same model: the query bank"""


class WeightFile(Artefact):
    """weight.json: a weight selected on the validation split"""


# Scores.


class MetricsFile(Artefact):
    """metrics.json"""


class PerImageFile(Artefact):
    """per_image.parquet: the scores of every image"""


class RanksFile(Artefact):
    """ranks.npz: the retrieval rank of every positive"""


class SummaryFile(Artefact):
    """summary.csv: all scores of an experiment"""


class ComparisonFile(Artefact):
    """comparison.json: the paired differences of two systems"""


class TableFile(Artefact):
    """A table; its suffix gives the format: Markdown, LaTeX, CSV or JSON"""


class FigureFile(Artefact):
    """A figure; one file per format"""


class PageFile(Artefact):
    """A page in HTML"""
