import pytest

from vitcapr.config.base import parse, parse_settings
from vitcapr.config.reranking import RerankingConfig
from vitcapr.errors import UserError
from vitcapr.stages.tune_reranking import TuneRerankingSettings


def test_a_retriever_is_needed_unless_it_is_the_oracle():
    assert parse(RerankingConfig, {"decoding": "beam", "retriever": "dual"}, "here").by == "retriever"
    assert parse(RerankingConfig, {"decoding": "beam", "by": "oracle"}, "here").retriever is None
    with pytest.raises(UserError, match="needs the key retriever"):
        parse(RerankingConfig, {"decoding": "beam"}, "here")
    with pytest.raises(UserError, match="retriever needs by retriever, not oracle"):
        parse(RerankingConfig, {"decoding": "beam", "by": "oracle", "retriever": "dual"}, "here")


def test_a_fixed_weight_is_a_retrievers():
    fixed = {"decoding": "beam", "retriever": "dual", "weight": 1.0}
    assert parse(RerankingConfig, fixed, "here").weight == 1.0
    with pytest.raises(UserError, match="weight needs by retriever, not oracle"):
        parse(RerankingConfig, {"decoding": "beam", "by": "oracle", "weight": 1.0}, "here")


def test_a_mistyped_key_is_an_error():
    with pytest.raises(UserError, match=r"did you mean 'weighing.select_by'"):
        parse_settings(TuneRerankingSettings, '{"weighing": {"select": "cider"}}')
