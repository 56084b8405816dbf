"""Vectors, such as embeddings of items, to discrete ids. What is heavy is imported when it is first used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqvae.modality import Modality, without_voice

if TYPE_CHECKING:
    import torch

    from sqvae.config import Experiment, NetworkSettings
    from sqvae.data import Progress, TakenAs
    from sqvae.export.exportable import Exportable
    from sqvae.inference.coding import Encoded
    from sqvae.inference.folders import Saved
    from sqvae.modalities.exploring import ExampleViewer
    from sqvae.modalities.inspecting import Inspection
    from sqvae.modalities.page import PageView
    from sqvae.modalities.vectors.tokenizer import VectorTokenizer
    from sqvae.modalities.views import DifferenceKey
    from sqvae.runs import CodeSet, Generator, Prepared
    from sqvae.tokenizers import Stored

OF_VECTORS = {"network.hidden", "network.codes", "network.values"}
"""Settings that only vectors have."""


class VectorModality(Modality):
    """Rows of numbers."""

    kind = "vectors"
    plural = "vectors"
    noun = "vector"
    inputs = "VECTORS.npy"
    code_endings = (".npz", ".csv")
    recipe = "vectors"
    learning_rate = 2e-3  # that of convolutional networks is too high without batch normalisation
    smoke_data = "points"
    tag = "semantic-ids"
    reading = ("Each vector is a grid of grey fields, row by row: bright above its mean, dark below.",)

    @property
    def own_data(self) -> "Callable[[], Experiment]":
        from sqvae.modalities.vectors.settings import vectors

        return vectors

    @property
    def network(self) -> "type[NetworkSettings]":
        from sqvae.modalities.vectors.settings import VectorNetworkSettings

        return VectorNetworkSettings

    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        setting = next((key for key in settings if key in OF_VECTORS), None)
        return None if setting is None else f"because {setting} is set, which is for vectors only"

    def recognised(self, source: str) -> "TakenAs | None":
        from sqvae.data import TakenAs
        from sqvae.modalities.vectors.files import holds_vectors

        return TakenAs(self.kind, "because the file holds rows of floats") if holds_vectors(source) else None

    def prepare(self, experiment: "Experiment", **options: Any) -> "Prepared":
        from sqvae.modalities.vectors.data import prepare_vectors

        return prepare_vectors(experiment, **options)

    def tokenizer(self, stored: "Stored", name: str | Path, device: "str | torch.device | None") -> "VectorTokenizer":
        from sqvae.modalities.vectors.tokenizer import tokenizer_of

        return tokenizer_of(stored, name, device)

    def code_set(self, tokenizer: Any, examples: Any, what: str, progress: "Progress | None") -> "CodeSet":
        from sqvae.modalities.vectors.codes import code_set

        return code_set(tokenizer, examples, what, progress)

    def encode_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Encoded":
        from sqvae.modalities.vectors.coding import encode_files

        return encode_files(tokenizer, inputs, path, **options)

    def decode_file(self, tokenizer: Any, codes: Path, path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.vectors.coding import decode_to_file

        return decode_to_file(tokenizer, codes, path, **without_voice(options))

    def reconstruct_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.vectors.coding import reconstruct_to_file

        return reconstruct_to_file(tokenizer, inputs, path, **without_voice(options))

    @property
    def difference_key(self) -> "DifferenceKey | None":
        from sqvae.modalities.vectors.views import VALUES

        return VALUES

    @property
    def page(self) -> "PageView":
        from sqvae.modalities.vectors.page import PAGE

        return PAGE

    @property
    def inspection(self) -> "Inspection":
        from sqvae.modalities.vectors.inspecting import INSPECTION

        return INSPECTION

    def explorer(self, tokenizer: Any, prior: "Generator | None") -> "ExampleViewer":
        from sqvae.modalities.vectors.exploring import VectorViewer

        return VectorViewer(tokenizer, prior)

    def encoder_and_decoder(self, tokenizer: Any) -> "tuple[Exportable, Exportable]":
        from sqvae.modalities.vectors.export import encoder_and_decoder

        return encoder_and_decoder(tokenizer)

    def described(self, tokenizer: Any) -> dict[str, Any]:
        from sqvae.modalities.vectors.export import described

        return described(tokenizer)

    def usage(self, tokenizer: Any, name: str) -> Iterator[str]:
        from sqvae.modalities.vectors.card import usage

        return usage(tokenizer, name)

    def code_rate(self, tokenizer: Any, bits: float) -> Iterator[str]:
        from sqvae.modalities.vectors.card import code_rate

        return code_rate(tokenizer, bits)

    def data_facts(self, tokenizer: Any) -> Iterator[str]:
        from sqvae.modalities.vectors.card import data_facts

        return data_facts(tokenizer)


VECTORS = VectorModality()
