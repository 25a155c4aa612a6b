from vitcapr.api.arrow import to_datasets as to_datasets
from vitcapr.api.evaluation import evaluate as evaluate
from vitcapr.api.retrieval_evaluation import evaluate_retrieval as evaluate_retrieval
from vitcapr.api.steps import extract as extract
from vitcapr.api.steps import run as run
from vitcapr.api.steps import seal as seal
from vitcapr.api.trained_captioner import load_captioner as load_captioner
from vitcapr.api.trained_retriever import load_retriever as load_retriever
from vitcapr.errors import UserError as UserError
from vitcapr.formats.manifest import read_manifest as read_manifest
from vitcapr.store.reader import open_features as open_features

__version__: str
