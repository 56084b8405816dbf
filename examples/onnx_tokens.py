"""A picture to codes and back, by two ONNX files that `sqvae export RUN --onnx -o FOLDER` has written, without sqvae.

python onnx_tokens.py FOLDER PICTURE REBUILT.png
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

folder, source, target = sys.argv[1:]
with open(f"{folder}/export.json") as file:
    wanted = json.load(file)["preprocessing"]
encoder, decoder = (onnxruntime.InferenceSession(f"{folder}/{half}.onnx") for half in ("encoder", "decoder"))

height, width = wanted["size"]
picture = Image.open(source).convert("RGB" if wanted["channels"] == 3 else "L")
fitted = ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR)  # the centre, in the model's size
pixels = np.asarray(fitted, np.float32).reshape(height, width, -1).transpose(2, 0, 1) / 255
codes = encoder.run(None, {"pictures": pixels[None]})[0]  # (1, rows, columns)
rebuilt = decoder.run(None, {"codes": codes})[0][0]  # (channels, height, width), between 0 and 1
Image.fromarray((255 * rebuilt.transpose(1, 2, 0)).round().astype(np.uint8).squeeze()).save(target)
print(codes[0])
