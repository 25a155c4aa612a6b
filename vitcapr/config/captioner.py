"""Configuration of captioners, of the decoding of captions and of their reranking."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import CHECKPOINT, Entry, Only, Section, StageSettings, UserPath
from vitcapr.config.parts import AnyReranker
from vitcapr.config.training import CaptionerTrainingConfig, Layer, TrainedConfig


class CaptionerConfig(TrainedConfig):
    """The keys that all architectures have."""

    chosen_by = "architecture"
    attends: ClassVar[bool] = True
    """Whether the model attends to patches at every word. Attention figures and grounding need this."""
    words: ClassVar[str] = "text"
    """Folder, in that of the experiment, of its vocabulary and of the captions in its numbers; ``{captioner}`` stands
    for its name."""

    architecture: str
    """baseline and patch_attention: the LSTM captioners of ViTCap-R; transformer: a Transformer decoder over the
    patches; or a captioner of an extension (docs/extend.md)."""
    backbone: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones."""
    layer: Layer = None
    """Hidden layer of the backbone to read, one of its layers; null: the output of the backbone."""
    start_from: str | None = None
    """Name of another captioner of the same architecture; training starts from its weights."""
    training: CaptionerTrainingConfig = CaptionerTrainingConfig()

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays of a feature store that the model reads."""
        return ("patches", "cls") if self.attends else ("cls",)

    @property
    def libraries(self) -> dict[str, tuple[str, str]]:
        """The optional libraries that it needs and the extras that install them, by the setting that asks for them."""
        return {}

    def check_patches(self, patches: int) -> None:
        """Check that it can read images of this number of patches.

        Raises:
            UserError: a setting does not fit; ``what`` begins with its key.
        """

    def described(self) -> dict[str, Any]:
        """Return the arguments of the model that come from the configuration, not from the data."""
        own = type(self).model_fields.keys() - CaptionerConfig.model_fields.keys()
        return self.model_dump(include=own - {"word_vectors"})


class WordCaptionerConfig(CaptionerConfig):
    """The keys of the architectures that are trained from nothing on the words of the vocabulary."""

    embedding_dim: int = Field(128, ge=1)
    """Width of the word embedding; of a transformer, also of its layers."""
    word_vectors: Annotated[str | None, Entry("word_vectors")] = None
    """Name of an entry of word_vectors that initialises the word embedding. The embedding is trained further."""
    hidden_dim: int = Field(256, ge=1)
    """Width of the LSTM state; of a transformer, the hidden width of its feed-forward sublayers."""
    dropout: float = Field(0.2, ge=0, lt=1)


class BaselineConfig(WordCaptionerConfig):
    attends = False

    architecture: Literal["baseline"] = "baseline"


class PatchAttentionConfig(WordCaptionerConfig):
    architecture: Literal["patch_attention"] = "patch_attention"
    attention_dim: int = Field(128, ge=1)
    scoring: Literal["tanh", "relu", "bilinear"] = "bilinear"
    """Attention score. tanh: equation 2 of the ViTCap-R paper; relu: Linear - ReLU - Linear, as in the paper's training
    section; bilinear: word times patch, a fraction of the arithmetic."""
    init_from_cls: bool = True
    """Start the LSTM from the CLS vector; false: from zeros."""
    output_dim: int | None = Field(None, ge=1)
    """Width of a hidden layer between [context, h] and the vocabulary; null: no hidden layer (ViTCap-R on MS COCO)."""
    output_activation: Literal["tanh", "relu"] = "tanh"
    """Activation of that hidden layer; relu: ViTCap-R on Flickr8k."""

    @property
    def arrays(self) -> tuple[str, ...]:
        return ("patches", "cls") if self.init_from_cls else ("patches",)


class TransformerConfig(WordCaptionerConfig):
    architecture: Literal["transformer"] = "transformer"
    layers: int = Field(2, ge=1)
    """Number of layers."""
    heads: int = Field(4, ge=1)
    """Number of attention heads. embedding_dim must be a multiple of it."""

    @property
    def arrays(self) -> tuple[str, ...]:
        return ("patches",)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.embedding_dim % self.heads or self.embedding_dim % 2:
            raise ValueError(f"embedding_dim {self.embedding_dim} must be even and a multiple of heads, {self.heads}")
        return self


class LanguageModelConfig(Section):
    """A pretrained causal language model of transformers with its tokenizer."""

    source: Annotated[UserPath, CHECKPOINT]
    """A hub id or a local folder (looked up under VITCAPR_BACKBONES first)."""
    revision: str = "main"
    """Revision on the hub; give a commit to make the experiment reproducible."""


class SamplingConfig(Section):
    temperature: float = Field(1.0, ge=1e-6, le=1e6)
    """Divisor of the logits. Below 1, samples are closer to the captions of beam search."""
    top_k: int | None = Field(None, ge=1)
    """Draw from the top_k most probable words; null: from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw from the fewest words that hold this share of the probability; 1: from all."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the samples. Those of an image depend on it and on the image's row, not on the other images."""


class DecodingConfig(Section):
    beam_size: Annotated[int, Only("sampling", None)] = Field(5, ge=1, le=1000)
    """Beam width; 1 is greedy decoding."""
    sampling: SamplingConfig | None = None
    """Draw n_best captions at random; null: search with a beam. Equal samples of an image count once."""
    max_length: int = Field(35, ge=2, le=10_000)
    """Maximum number of words in a caption; the end token is not counted."""
    min_length: int = Field(1, ge=1)
    """Minimum number of words before the end token is allowed."""
    length_penalty: float = Field(0.0, ge=0, le=10)
    """Hypotheses are ranked by log-probability / length ** length_penalty; 0: no length normalisation."""
    block_ngram: int = Field(0, ge=0)
    """Size of the n-grams that may occur only once in a caption; 0: no blocking."""
    n_best: int = Field(1, ge=1, le=10_000)
    """Candidates stored per image; at most beam_size. With sampling, captions drawn per image."""
    attention: bool = False
    """Store the attention over the patches for every word of the best caption."""
    batch_images: int = Field(64, ge=1)
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"

    @property
    def method(self) -> str:
        """Describe in a few words how captions are generated."""
        if self.sampling is not None:
            return f"{self.n_best} samples"
        return "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        if self.sampling is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best {self.n_best} is larger than beam_size {self.beam_size}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is larger than max_length {self.max_length}")
        return self


class WeighingConfig(Section):
    """Selection of the retriever's weight by CIDEr of the validation split."""

    tolerance: float = Field(0.0, ge=0)
    """How far below the best score the selected weight may lie. The largest such weight is selected: it
    gives captions of more different words, which differ more from image to image. 0: the weight of the best score."""
    length_penalty: float = Field(0.0, ge=0, le=10)
    """The likelihood term is log-probability / length ** length_penalty, as in a decoding. With the decoding's own
    length_penalty, weight 0 keeps the order of the decoding."""
    grid_steps: int = Field(20, ge=1)
    """Number of equal steps between weight 0 and weight 1."""
    language_model: LanguageModelConfig | None = None
    """A language model that sees no image: the likelihood P(t | image) becomes P(t | image) / P(t) ** alpha (Lin et al.
    2023, arXiv 2306.01879), with the best alpha of 0, 0.25, 0.5, 0.75 and 1."""


class RerankingConfig(Section):
    decoding: Annotated[str, Entry("decodings")]
    """Name of an entry of decodings with n_best of at least 2."""
    by: Literal["retriever", "oracle"] = "retriever"
    """retriever: likelihood and cosine; oracle: the candidate that scores best against the references. An oracle is an
    upper bound, so its name must contain 'oracle'."""
    retriever: Annotated[str | None, Only("by", "retriever"), Entry("retrievers")] = None
    """Name of an entry of retrievers."""
    scorer: Annotated[AnyReranker, Only("by", "retriever")] = Field("cosine", validate_default=True)
    """cosine: that of image and caption in the retriever's space; or a scorer of your own (docs/extend.md)."""
    weight: Annotated[float | None, Only("by", "retriever")] = Field(None, ge=0, le=1)
    """Fixed weight of the retriever; 1: the cosine alone, as in ViTCap-R; null: selected by weighing."""
    weighing: WeighingConfig = WeighingConfig()

    @model_validator(mode="after")
    def _a_retriever_where_one_is_needed(self) -> Self:
        if self.by == "retriever" and self.retriever is None:
            raise ValueError("by: retriever needs the key retriever")
        return self


class RerankSettings(StageSettings):
    """The settings of the stage ``rerank``. A chosen weight stands in its file, with what it was chosen with."""

    scorer: AnyReranker = Field("cosine", validate_default=True)
    weight: float | None = Field(None, ge=0, le=1)
    length_penalty: float = Field(1.0, ge=0, le=10)
    """Length penalty of the likelihood; with a fixed weight only."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        reranking = config.rerankings[wildcards.reranking]
        fixed = {} if reranking.weight is None else {"length_penalty": reranking.weighing.length_penalty}
        return cls(scorer=reranking.scorer, weight=reranking.weight, **fixed)
