"""Image tokenizers as programs that can be exported, and what a user of an exported model must know."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from sqvae.export.exportable import (
    CPU,
    Exportable,
    Slot,
    codes_slot,
    encoder_for,
    few_ties,
    no_ties,
    random_codes,
    trial_shapes,
)
from sqvae.export.programs import Encoding
from sqvae.modalities.images.assembly import stride_of
from sqvae.modalities.images.codebook import map_size
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.medium import Medium
from sqvae.models import LatentModel

CROPPING = "cropped around the centre (crop: the side of a square; null: the largest part of the result's shape)"
RESIZING = {
    False: f"upright by EXIF, over white where transparent, {CROPPING}, resized bilinearly, antialiased; bytes / 255",
    True: f"{CROPPING}, resized by the nearest pixel",
}


class ImageEncoding(Encoding):
    """Pictures, label maps or grey levels to codes."""

    def __init__(self, model: LatentModel, model_input: Callable[[Tensor], Tensor]) -> None:
        super().__init__(model)
        self.likelihood = model.likelihood
        self.model_input = model_input

    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        encoded: Tensor | tuple[Tensor, Tensor] = self.encoder(self.likelihood.embed(self.model_input(x)))
        return encoded


class ImageDecoding(nn.Module):
    """Codes to pictures, label maps or grey levels."""

    def __init__(self, model: LatentModel, medium: Medium) -> None:
        super().__init__()
        self.quantizer, self.decoder, self.likelihood = model.quantizer, model.decoder, model.likelihood
        self.medium = medium

    def forward(self, codes: Tensor) -> Tensor:  # (batch, h, w) -> (batch, C, H, W)
        return self.medium.output(self.likelihood.predict(self.decoder(self.quantizer.decode(codes))))


def encoder_and_decoder(tokenizer: ImageTokenizer) -> tuple[Exportable, Exportable]:
    """Both networks of a tokenizer of images, on the CPU."""
    model, medium = deepcopy(tokenizer.inference_model).to(CPU), tokenizer.medium
    stride = stride_of(tokenizer.experiment, tokenizer.shape)
    rows, columns = Dim("rows", min=1), Dim("columns", min=1)
    decoder = Exportable(
        "decoder",
        ImageDecoding(model, medium).eval(),
        (codes_slot(tokenizer, "rows", "columns"),),
        _data_slot(tokenizer, f"height and width are multiples of {stride}"),
        lambda codes: tokenizer.decode(codes).cpu(),
        tuple((random_codes(tokenizer, shape),) for shape in trial_shapes(*map_size(tokenizer))),
        {"rows": rows, "columns": columns, "height": stride * rows, "width": stride * columns},
        no_ties if tokenizer.experiment.kind == "pictures" else few_ties,
    )
    encoding = ImageEncoding(model, _as_given if tokenizer.preprocessing.labels else partial(_on_cpu, medium))
    return encoder_for(decoder, encoding, lambda pictures: tokenizer.encode(pictures).cpu()), decoder


def _data_slot(tokenizer: ImageTokenizer, sides: str) -> Slot:
    wanted = tokenizer.preprocessing
    if not wanted.labels:
        shape = ("batch", tokenizer.shape[0], "height", "width")
        return Slot("pictures", torch.float32, shape, f"between 0 and 1; {sides}")
    nothing = "" if wanted.ignore is None else f", and {wanted.ignore} where nothing is known"
    classes = f"the class of each pixel, 0 ... {(wanted.classes or 1) - 1}{nothing}"
    return Slot("labels", torch.int64, ("batch", "height", "width"), f"{classes}; {sides}")


def _as_given(x: Tensor) -> Tensor:
    return x


def _on_cpu(medium: Medium, x: Tensor) -> Tensor:
    return medium.model_input(x, CPU)


def described(tokenizer: ImageTokenizer) -> dict[str, Any]:
    """Preprocessing, stride and classes."""
    channels, height, width = tokenizer.shape
    data, labels = tokenizer.experiment.data, tokenizer.preprocessing.labels
    found: dict[str, Any] = {
        "stride": stride_of(tokenizer.experiment, tokenizer.shape),
        "preprocessing": {"size": [height, width], "crop": data.crop, "channels": channels, "how": RESIZING[labels]},
    }
    if labels:
        classes = {
            "number": data.classes,
            "ignore": data.ignore,
            "names": data.class_names,
            "colours": data.class_colours,
        }
        found["classes"] = classes
    return found
