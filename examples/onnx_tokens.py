"""A picture or a label map to codes and back, by two ONNX files that `sqvae export RUN --onnx -o FOLDER` has written,
without sqvae.

usage: python onnx_tokens.py FOLDER PICTURE REBUILT.png
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


def centre(width: int, height: int, wanted: dict) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of what is kept: a square, or the largest part that has the shape of the result."""
    rows, columns = wanted["size"]
    if wanted["crop"] is None:
        scale = min(width / columns, height / rows)
        across, down = max(round(scale * columns), 1), max(round(scale * rows), 1)
    else:
        across = down = min(wanted["crop"], width, height)
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def as_picture(image: Image.Image, wanted: dict) -> np.ndarray:  # -> (channels, height, width), between 0 and 1
    height, width = wanted["size"]
    upright = ImageOps.exif_transpose(image)
    if "A" in upright.getbands() or "transparency" in upright.info:
        opaque = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", opaque.size, "white"), opaque)
    picture = upright.convert("RGB" if wanted["channels"] == 3 else "L")
    fitted = picture.crop(centre(*picture.size, wanted)).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(fitted, np.float32).reshape(height, width, -1).transpose(2, 0, 1) / 255


def as_labels(image: Image.Image, wanted: dict) -> np.ndarray:  # -> (height, width), the classes' numbers
    height, width = wanted["size"]
    left, top, right, bottom = centre(*image.size, wanted)
    rows = top + (2 * np.arange(height) + 1) * (bottom - top) // (2 * height)  # the pixel in the middle of each new one
    columns = left + (2 * np.arange(width) + 1) * (right - left) // (2 * width)
    return np.asarray(image, np.int64)[np.ix_(rows, columns)]


def main(folder: str, source: str, target: str) -> None:
    with open(f"{folder}/export.json") as file:
        wanted = json.load(file)["preprocessing"]
    encoder, decoder = (onnxruntime.InferenceSession(f"{folder}/{half}.onnx") for half in ("encoder", "decoder"))
    given = encoder.get_inputs()[0].name  # "labels" where the model is one of label maps, or else "pictures"
    image = Image.open(source)
    data = as_labels(image, wanted) if given == "labels" else as_picture(image, wanted)
    codes = encoder.run(None, {given: data[None]})[0]  # (1, rows, columns)
    rebuilt = decoder.run(None, {"codes": codes})[0][0]
    if given == "labels":  # (height, width)
        rebuilt = Image.fromarray(rebuilt.astype(np.uint8))
        if image.mode == "P":  # in the colours of the map that was given
            rebuilt.putpalette(image.getpalette())
    else:  # (channels, height, width), between 0 and 1
        rebuilt = Image.fromarray((255 * rebuilt.transpose(1, 2, 0)).round().astype(np.uint8).squeeze())
    rebuilt.save(target)
    print(codes[0])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
