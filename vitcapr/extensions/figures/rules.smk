# Figures. settings.py has their paths and lists the pictures of a run.

from vitcapr.extensions.figures import settings as figures

histories = paths.model_files(paths.HISTORY, figures.with_history(experiment))
cards = paths.model_files(paths.CARD, figures.with_card(experiment))
uses = paths.model_files(paths.GPU_USE, figures.trained_models(experiment))
family_cards = figures.family_files(experiment, paths.CARD)
family_scores = figures.family_files(experiment, paths.RETRIEVAL_SCORES)
compared_embeddings = partial(figures.compared_embeddings, experiment)
drawn_captions = captioning.captions()
drawn_claims = captioning.claims(drawn_captions)


use rule cpu_job as draw_attention with:
    input:
        captions=paths.CAPTIONS,
        attention=paths.ATTENTION,
        manifest=paths.MANIFEST,
        vocabulary=paths.VOCABULARY,
    output:
        pictures=report(
            targets.in_formats(figures.attended(experiment)),
            caption=figure_caption,
            category="Attention",
            labels={
                "figure": "attention by word",
                "decoding": "{decoding}",
                "split": "{split}",
            },
        ),
    log:
        paths.log("draw_attention", "captioner", "decoding", "split"),
    priority: 5
    params:
        **stages.draw_attention(),
        caption="Where {captioner} looks when it writes a word: the attention over the patches, enlarged to the size "
        "of the image. Brighter is more.",


use rule cpu_job as draw_caption_lengths with:
    input:
        tokens=paths.TOKENS,
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.CAPTION_LENGTHS),
            caption=figure_caption,
            category="Data",
            labels={"figure": "caption lengths"},
        ),
    log:
        paths.log("draw_caption_lengths"),
    params:
        **stages.draw_caption_lengths(),
        caption="How long the captions of each split are, in words.",


use rule cpu_job as draw_word_frequencies with:
    input:
        vocabulary=paths.VOCABULARY,
    output:
        pictures=report(
            targets.in_formats(figures.WORD_FREQUENCIES),
            caption=figure_caption,
            category="Data",
            labels={"figure": "word frequencies"},
        ),
    log:
        paths.log("draw_word_frequencies"),
    params:
        **stages.draw_word_frequencies(),
        caption="How often each word of the training captions occurs, by rank. The rarer words, which are outside the "
        "vocabulary, are marked.",


use rule cpu_job as draw_captions with:
    input:
        captions=list_files(drawn_captions),
        claims=list_files(drawn_claims),
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.CAPTION_SHEET),
            caption=figure_caption,
            category="Captions",
            labels={"figure": "captioned images", "split": "{split}"},
        ),
    log:
        paths.log("draw_captions", "split"),
    params:
        **stages.draw_captions(
            captions=drawn_captions,
            claims=drawn_claims,
            language=experiment.config.text.language,
        ),
        caption="Images of the {split} split, chosen at random, with the caption that every model and decoding wrote.",


use rule cpu_job as draw_reranked with:
    input:
        before=captioning.candidates,
        after=paths.RERANKED,
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.RERANKED_SHEET),
            caption=figure_caption,
            category="Captions",
            labels={"figure": "before and after reranking", "split": "{split}"},
        ),
    log:
        paths.log("draw_reranked", "captioner", "reranking", "split"),
    priority: 5
    params:
        **stages.draw_reranked(language=experiment.config.text.language),
        caption="Captions of {captioner} before and after {reranking}, of images whose caption changed, with the CIDEr "
        "of both. Struck through: removed words; underlined: added words.",


# Training.


use rule cpu_job as draw_curves with:
    input:
        histories=list_files(histories),
        cards=list_files(cards),
    output:
        pictures=report(
            targets.in_formats(figures.curve_patterns(experiment)),
            caption=figure_caption,
            category="Training",
            labels={"figure": "training curves"},
        ),
    log:
        paths.log("draw_curves"),
    params:
        **stages.draw_curves(
            histories=histories,
            cards=cards,
        ),
        caption="Loss on the training and the validation split after every epoch, and the validation score where it was "
        "measured; for self-critical phases, the reward in training. A star marks the epoch whose weights are used, on "
        "the score that chose it. A dotted line marks the start of a phase.",


use rule cpu_job as draw_gpu with:
    input:
        uses=list_files(uses),
    output:
        pictures=report(
            targets.in_formats(figures.GPU_CURVES),
            caption=figure_caption,
            category="Training",
            labels={"figure": "GPU use and memory"},
        ),
    log:
        paths.log("draw_gpu"),
    params:
        **stages.draw_gpu(uses=uses),
        caption="GPU use and GPU memory while each model trained, sampled every two seconds; a training that was "
        "continued goes on where it stopped. Trainings on a CPU are left out.",


# Retrieval.


use rule cpu_job as draw_embeddings with:
    input:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{retriever}"),
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.SPACES),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "the shared space", "split": "{split}"},
        ),
    log:
        paths.log("draw_embeddings", "retriever", "split"),
    wildcard_constraints:
        retriever=one_of(models.ranked),
    params:
        **stages.draw_embeddings(retriever=lambda job: job.retriever),
        caption="The space of {retriever} with the images and captions of the {split} split. `tsne`: the first 300 "
        "images, each joined to its first caption by a line. `cosines`: positive pairs against the hardest wrong caption "
        "of each image and against random wrong pairs, with the share of area that they have in common.",


use rule cpu_job as draw_retrieved with:
    input:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{retriever}"),
        ranks=paths.fill(paths.RANKS, scored="{retriever}"),
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.FAILURES),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "failures", "split": "{split}"},
        ),
    log:
        paths.log("draw_retrieved", "retriever", "split"),
    wildcard_constraints:
        retriever=one_of(models.ranked),
    params:
        **stages.draw_retrieved(retriever=lambda job: job.retriever),
        caption="Where {retriever} fails on the {split} split, drawn at random from all failures: the wrong match that "
        "came first beside the true one, with cosine and rank. Some wrong matches fit the picture well; the data set "
        "still counts them as wrong.",


use rule cpu_job as draw_recall with:
    input:
        metrics=list_files(retrieval.recall_scores),
    output:
        pictures=report(
            targets.in_formats(figures.RECALL),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "recall of all retrievers", "split": "{split}"},
        ),
    log:
        paths.log("draw_recall", "split"),
    params:
        **stages.draw_recall(metrics=retrieval.recall_scores),
        caption="Recall@1, 5 and 10 of all retrievers on the {split} split, with 95 % intervals; for a retriever that "
        "was trained with several seeds the mean, with a standard deviation over them each way. From image to text, "
        "any of an image's captions is a hit. Each panel has a scale of its own.",


use rule cpu_job as draw_learning_curve with:
    input:
        cards=list_files(family_cards),
        metrics=list_files(family_scores),
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(figures.LEARNING_CURVE),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "recall over training pairs", "split": "{split}"},
        ),
    log:
        paths.log("draw_learning_curve", "split"),
    params:
        **stages.draw_learning_curve(
            cards=family_cards,
            metrics=family_scores,
            language=experiment.config.text.language,
        ),
        caption="Recall@1 on the {split} split over the number of training pairs, on a logarithmic axis: the mean over "
        "the seeds, a standard deviation each way as a band, and every training as a dot.",


use rule cpu_job as draw_side_by_side with:
    input:
        embeddings=list_files(compared_embeddings),
        manifest=paths.MANIFEST,
        pools=lambda job: (
            [paths.fill(paths.POOLS, experiment=job.experiment)]
            if job.split == figures.POOLS
            else []
        ),
    output:
        found=report(
            figures.SIDE_BY_SIDE_TABLE,
            caption=figure_caption,
            category="Retrieval",
            labels={
                "figure": "models side by side",
                "language": "{language}",
                "split": "{split}",
            },
        ),
        pictures=report(
            targets.in_formats(figures.SIDE_BY_SIDE),
            caption=figure_caption,
            category="Retrieval",
            labels={
                "figure": "models side by side",
                "language": "{language}",
                "split": "{split}",
            },
        ),
    log:
        paths.log("draw_side_by_side", "language", "split"),
    wildcard_constraints:
        language=one_of(list(retrieval.compared)),
        split=one_of([*models.splits, figures.POOLS]),
    params:
        **stages.draw_side_by_side(embeddings=compared_embeddings),
        caption="Models side by side on the {split} split, with captions in the language {language}. `top_captions`: the "
        "first five captions that each retrieves for one image. `top_images`: the first five images that each retrieves "
        "for one caption. Correct matches are marked; queries are random. `spaces`: the images and captions on the two "
        "main directions of each model's space, on the same axes. `found.md` has the same matches as text, for languages "
        "that no font of the machine can show.",
