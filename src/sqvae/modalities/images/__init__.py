"""Images, label maps and grey levels. What is heavy is imported when it is first used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqvae.modality import Modality, without_voice

if TYPE_CHECKING:
    import torch

    from sqvae.config import Experiment
    from sqvae.data import Progress, TakenAs
    from sqvae.export.exportable import Exportable
    from sqvae.inference.coding import Encoded
    from sqvae.inference.folders import Saved
    from sqvae.modalities.exploring import ExampleViewer
    from sqvae.modalities.images.tokenizer import ImageTokenizer
    from sqvae.modalities.inspecting import Inspection
    from sqvae.modalities.page import PageView
    from sqvae.modalities.views import DifferenceKey
    from sqvae.runs import CodeSet, Generator, Prepared
    from sqvae.tokenizers import Stored

OF_LABELS = {"data.classes", "data.ignore", "data.class_names", "data.class_colours"}
OF_IMAGES = {"data.channels", "likelihood.variance", "likelihood.initial_variance"}
"""Settings that only label maps have, and those that only images have."""


class ImageModality(Modality):
    """What the kinds of data have in common that are stored as images."""

    pipeline: str | None = "image-feature-extraction"
    tag = "image-tokenizer"
    smoke_data = "shapes"
    is_image = True

    def recognised(self, source: str) -> "TakenAs | None":
        from sqvae.data import recognise

        found = recognise(source)
        return found if found.kind == self.kind else None

    def prepare(self, experiment: "Experiment", **options: Any) -> "Prepared":
        from sqvae.modalities.images.data import prepare_pictures

        return prepare_pictures(experiment, **options)

    def tokenizer(self, stored: "Stored", name: str | Path, device: "str | torch.device | None") -> "ImageTokenizer":
        from sqvae.modalities.images.tokenizer import tokenizer_of

        return tokenizer_of(stored, name, device)

    def code_set(self, tokenizer: Any, examples: Any, what: str, progress: "Progress | None") -> "CodeSet":
        from sqvae.modalities.images.codes import code_set

        return code_set(tokenizer, examples, what, progress)

    def encode_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Encoded":
        from sqvae.modalities.images.coding import encode_files

        return encode_files(tokenizer, inputs, path, **options)

    def decode_file(self, tokenizer: Any, codes: Path, path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.images.coding import decode_file

        return decode_file(tokenizer, codes, path, **without_voice(options))

    def reconstruct_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.images.coding import reconstruct_files

        return reconstruct_files(tokenizer, inputs, path, **without_voice(options))

    def sample_files(
        self, run: str | Path, prior: str | Path | None, path: Path, choices: Any, **options: Any
    ) -> "Saved":
        from sqvae.modalities.images.sampling import sample_files

        return sample_files(run, prior, path, choices, **without_voice(options))

    @property
    def difference_key(self) -> "DifferenceKey | None":
        from sqvae.modalities.images.views import BRIGHTNESS

        return BRIGHTNESS

    @property
    def page(self) -> "PageView":
        from sqvae.modalities.images.page import PAGE

        return PAGE

    @property
    def inspection(self) -> "Inspection":
        from sqvae.modalities.images.inspecting import INSPECTION

        return INSPECTION

    def explorer(self, tokenizer: Any, prior: "Generator | None") -> "ExampleViewer":
        from sqvae.modalities.images.exploring import ImageViewer

        return ImageViewer(tokenizer, prior)

    def encoder_and_decoder(self, tokenizer: Any) -> "tuple[Exportable, Exportable]":
        from sqvae.modalities.images.export import encoder_and_decoder

        return encoder_and_decoder(tokenizer)

    def described(self, tokenizer: Any) -> dict[str, Any]:
        from sqvae.modalities.images.export import described

        return described(tokenizer)

    def usage(self, tokenizer: Any, name: str) -> Iterator[str]:
        from sqvae.modalities.images.card import usage

        return usage(tokenizer, name)

    def code_rate(self, tokenizer: Any, bits: float) -> Iterator[str]:
        from sqvae.modalities.images.card import code_rate

        return code_rate(tokenizer, bits)

    def data_facts(self, tokenizer: Any) -> Iterator[str]:
        from sqvae.modalities.images.card import data_facts

        return data_facts(tokenizer)

    def limits(self, tokenizer: Any) -> Iterator[str]:
        from sqvae.modalities.images.card import limits

        return limits(tokenizer)


class Pictures(ImageModality):
    """Images of real numbers, in grey or in colour."""

    kind = "pictures"
    plural = "images"
    noun = "image"
    recipe = "pictures"

    @property
    def own_data(self) -> "Callable[[], Experiment]":
        from sqvae.recipes.vision import pictures

        return pictures

    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        setting = next((key for key in settings if key in OF_IMAGES), None)
        if settings.get("likelihood.name") == "gaussian":
            setting = setting or "likelihood.name=gaussian"
        return None if setting is None else f"because {setting} is set, which is for images only"


class Labels(ImageModality):
    """Label maps, whose pixels are classes."""

    kind = "labels"
    plural = "label maps"
    noun = "label map"
    recipe = "label-maps"
    likelihoods = ("vmf", "categorical")
    tag = "label-maps"
    pipeline = None
    smoke_data = "shape-maps"

    @property
    def own_data(self) -> "Callable[[], Experiment]":
        from sqvae.recipes.categories import label_maps

        return label_maps

    @property
    def difference_key(self) -> None:
        return None

    def legend(self, tokenizer: Any, measures: dict[str, float]) -> str:
        from sqvae.modalities.images.page import legend_of

        return legend_of(tokenizer, measures)

    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        likelihood = settings.get("likelihood.name")
        if likelihood in self.likelihoods:
            return f"because likelihood.name={likelihood} is set, which is for classes only"
        setting = next((key for key in settings if key in OF_LABELS), None)
        return None if setting is None else f"because {setting} is set, which is for label maps only"


class Levels(ImageModality):
    """Grey images, whose levels are 256 ordered classes."""

    kind = "levels"
    plural = "grey levels"
    noun = "image"
    recipe = "grey-levels"
    likelihoods = ("vmf", "categorical")

    @property
    def own_data(self) -> "Callable[[], Experiment]":
        from sqvae.recipes.categories import grey_levels

        return grey_levels

    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        return None  # they look like images, so that a person has to ask for them


PICTURES, LABELS, LEVELS = Pictures(), Labels(), Levels()
