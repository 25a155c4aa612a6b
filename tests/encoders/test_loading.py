"""Loading a model leaves the settings of torch and transformers as they were, also from threads."""

import json
import threading
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.checkpoints import save_bert
from vitcapr.encoders.checkpoint_kinds import check_text_encoder
from vitcapr.encoders.checkpoints import load_half, open_tokenizer, read_config
from vitcapr.encoders.loading import one_at_a_time
from vitcapr.errors import UserError


def test_a_tokenizer_adds_the_tokens_that_it_states(tmp_path: Path) -> None:
    words = {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3, "a": 4, "dog": 5}
    own = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    own.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 2)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=own, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    fast.save_pretrained(tmp_path)
    assert open_tokenizer(tmp_path)(["a dog"])["input_ids"] == [[2, 4, 5]]
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"add_bos_token": True, "add_eos_token": True}))
    tokenizer = open_tokenizer(tmp_path)
    assert tokenizer(["a dog"])["input_ids"] == [[2, 4, 5, 3]]
    assert tokenizer("a dog a dog", truncation=True, max_length=4)["input_ids"] == [2, 4, 5, 3]


def test_an_adapter_beside_the_weights_is_refused(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "bert", ["a"])
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match="merge it"):
        check_text_encoder(folder, "hidden", 8)


def test_threads_that_load_leave_the_globals_and_disturb_no_arithmetic(tmp_path: Path) -> None:
    folder, logging = save_bert(tmp_path / "bert", ["a"]), transformers.utils.logging
    before = (torch.get_default_dtype(), logging.get_verbosity(), logging.is_progress_bar_enabled())
    random, dtypes = torch.get_rng_state(), set()

    @one_at_a_time
    def load() -> None:
        load_half(folder, read_config(folder), torch.bfloat16, "text")

    @one_at_a_time
    def compute() -> None:
        dtypes.add(torch.rand(2).dtype)

    def work() -> None:
        for _ in range(6):
            load()
            compute()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dtypes == {torch.float32}
    assert (torch.get_default_dtype(), logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert torch.equal(torch.get_rng_state(), random)
