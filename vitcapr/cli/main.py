"""The program ``vitcapr``: finds the command and loads nothing else."""

import difflib
import runpy
import sys

from vitcapr import __version__
from vitcapr.errors import EXIT_BAD_INPUT

COMMANDS: dict[str, dict[str, str]] = {
    "Trained models": {
        "caption": "Caption photographs: files, folders or patterns.",
        "search": "Find images by words or by an image.",
        "train_head": "Projection heads on two stores of your own.",
    },
    "An experiment": {
        "status": "What would be computed again, and why.",
        "why": "What made an artefact, from what, where, and what it cost.",
        "diff": "What differs between two results, and in what they were made from.",
        "gc": "What nothing needs any more: list it, delete it.",
        "config": "Check a configuration, show it in full, or print its schema.",
        "table": "Print the scores of a summary.",
        "pairs": "Write pairs as a table, with the pictures in Base64.",
        "features": "Inspect, verify, move, import, export and tidy stored features.",
    },
    "Its stages, as the rules call them": {
        "data_scenes": "Render pictures with captions and masks.",
        "data_flickr8k": "Flickr8k on disk -> manifest.",
        "data_flickr30k": "Flickr30k on disk or in Parquet files -> manifest.",
        "data_coco": "MS COCO on disk -> manifest.",
        "data_pairs": "Pairs in two languages -> manifest, split, pools.",
        "word_vectors": "A GloVe file -> the embedding to start from.",
        "train_backbone": "Train the small ViT of the rendered pictures.",
        "extract": "Pictures -> features, one task of several.",
        "seal": "The parts of all tasks -> verified features.",
        "adopt": "A store pulled or imported -> the features of an experiment.",
        "pair_claims": "What a paper says of its preprocessing, measured.",
        "tag_words": "Captions -> parts of speech.",
        "extract_pixels": "Pictures -> decoded pixels.",
        "extract_text": "Captions -> features of a text encoder.",
        "train_retriever": "Features and captions -> a dual encoder.",
        "embed": "A dual encoder -> embeddings of a split.",
        "train_tokenizer": "Captions -> a WordPiece tokenizer.",
        "tune_reranking": "The weight of a retriever in reranking, on validation.",
        "rerank": "Candidates and a retriever -> captions in a new order.",
        "rerank_oracle": "Candidates and references -> the ceiling of reranking.",
        "paraphrases": "Captions of a split -> the paraphrases that METEOR can use of them.",
        "score": "Captions -> BLEU, METEOR, ROUGE-L, CIDEr.",
        "score_languages": "Embeddings -> retrieval from one language to another.",
        "measure_information": "Embeddings before and after training -> entropy and mutual information.",
        "score_retrieval": "Embeddings -> Recall@K, ranks, mAP@R.",
        "score_pools": "Embeddings -> Recall@K of queries set apart against pools of candidates.",
        "compare": "Two scored systems -> what changed, and how surely.",
        "ground": "Attention -> the share of it that falls on the object.",
        "check_facts": "Captions of scenes -> the share of their claims that are so.",
        "draw_curves": "Training curves.",
        "draw_losses": "Losses of matchers side by side.",
        "draw_attention": "Attention by word.",
        "draw_text": "Word frequencies and caption lengths.",
        "draw_rollout": "Where the backbone looks beside where the captioner looks.",
        "draw_reranked": "Captions before and after reranking.",
        "draw_recall": "Recall of all retrievers.",
        "draw_embeddings": "The space of images and captions.",
        "draw_retrieved": "Queries whose first match is wrong.",
        "draw_side_by_side": "What several models find first, and their spaces.",
        "draw_learning_curve": "Recall over the number of training pairs.",
        "draw_pixels": "Augmented pictures, and one in Base64.",
        "draw_pair_lengths": "Lengths of texts by language, before and after cleaning.",
        "draw_gpu": "GPU use and memory over training.",
        "summary": "All scores -> one table.",
        "spread": "Scores over seeds: mean, spread, and who is ahead beyond it.",
        "paper_tables": "The scores beside a paper's and the literature's.",
    },
}


def main() -> None:
    """Run ``vitcapr COMMAND ...`` as ``python -m vitcapr.cli.COMMAND ...``."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return
    if arguments[0] == "--version":
        print(f"vitcapr {__version__}")
        return
    command = arguments[0].replace("-", "_")
    known = [name for group in COMMANDS.values() for name in group]
    if command not in known:
        close = difflib.get_close_matches(command, known, n=1)
        remedy = f"did you mean '{close[0]}'?" if close else "vitcapr --help lists the commands"
        print(f"error: no command '{arguments[0]}'; {remedy}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    sys.argv = [f"vitcapr {command}", *arguments[1:]]
    runpy.run_module(f"vitcapr.cli.{command}", run_name="__main__")


def usage() -> str:
    width = max(len(name) for group in COMMANDS.values() for name in group)
    lines = ["Usage: vitcapr COMMAND [OPTIONS]     vitcapr COMMAND --help explains one", ""]
    for title, group in COMMANDS.items():
        lines += [f"{title}:", *(f"  {name:{width}}  {line}" for name, line in group.items()), ""]
    lines += ["The whole pipeline: snakemake --cores 2 [--configfile experiments/NAME.yaml]"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
