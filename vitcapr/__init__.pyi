from vitcapr.api.captioner import load_captioner as load_captioner
from vitcapr.api.evaluation import evaluate as evaluate
from vitcapr.api.evaluation import evaluate_retrieval as evaluate_retrieval
from vitcapr.api.retriever import load_retriever as load_retriever
from vitcapr.api.steps import build_vocabulary as build_vocabulary
from vitcapr.api.steps import decode as decode
from vitcapr.api.steps import embed as embed
from vitcapr.api.steps import extract as extract
from vitcapr.api.steps import extract_text as extract_text
from vitcapr.api.steps import prepare_data as prepare_data
from vitcapr.api.steps import seal as seal
from vitcapr.api.steps import train_captioner as train_captioner
from vitcapr.api.steps import train_head as train_head
from vitcapr.api.steps import train_retriever as train_retriever
from vitcapr.errors import UserError as UserError
from vitcapr.formats.manifest import read_manifest as read_manifest
from vitcapr.store.reader import open_features as open_features

__version__: str
