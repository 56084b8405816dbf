"""Speech, as spectrograms, for the page of `sqvae explore`."""

from typing import Any

from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleViewer
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.speech.uploads import LONGEST, sound_from
from sqvae.modalities.speech.views import code_spectrograms, decoded_spectrogram, view_utterance
from sqvae.modalities.views import CodedExample
from sqvae.networks.speech import STRIDE
from sqvae.reports.sound import as_flac
from sqvae.runs import Generator

DRAWN_SECONDS = 2
"""The duration of a sample from a prior."""


class SpeechViewer(ExampleViewer):
    """Speech, displayed as spectrograms."""

    noun = "recording"
    accept = "audio/*"
    wide = True
    replacement_caption = "the spectrogram of each by itself"

    def __init__(self, tokenizer: SpeechTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.voices = tokenizer.speakers

    def read(self, content: bytes, name: str) -> Example:
        frames, samples, is_cut = sound_from(content, self.tokenizer.features)
        note = f"only the first {LONGEST} seconds" if is_cut else ""
        return Example(frames, name, note=note, recorded=lambda: samples, samples=len(samples))

    def held_out(self, examples: Any, index: int) -> Example:
        features = self.tokenizer.features
        frames, max_frames = examples.frames(index), round(LONGEST / features.seconds_per_frame)
        voice = examples.speakers[index]
        samples = int(examples.samples[index]) if len(frames) <= max_frames else (max_frames - 1) * features.shift
        return Example(
            frames[:max_frames],
            f"held-out utterance {index + 1:,} of {len(examples):,}, by {voice}",
            voice if voice in self.voices else None,
            f"only the first {LONGEST} seconds" if len(frames) > max_frames else "",
            lambda: examples.sound(index, features.rate, samples),
            samples,
        )

    def view(self, example: Example, codes: Tensor | None = None) -> CodedExample:
        return view_utterance(self.tokenizer, example.data, example.voice, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return decoded_spectrogram(self.tokenizer, codes)

    def code_images(self, codes: Tensor) -> Tensor:
        return code_spectrograms(self.tokenizer, codes)

    def sound(self, example: Example, codes: Tensor) -> bytes:
        frames = self.tokenizer.decode([codes], example.voice or self.voices[0], [len(example.data)])[0]
        return as_flac(
            self.tokenizer.sound(frames, samples=example.samples).cpu().numpy(), self.tokenizer.features.rate
        )

    def original(self, example: Example) -> bytes | None:
        if example.recorded is None:
            return None
        try:
            return as_flac(example.recorded(), self.tokenizer.features.rate)
        except (OSError, ValueError):  # the file may have been removed
            return None

    def columns(self, codes: Tensor) -> int:
        return len(codes)

    def box(self, codes: Tensor, position: int) -> Box:
        return Box(STRIDE * position, 0, STRIDE, self.tokenizer.features.mels)

    def seconds(self, frames: int) -> float:
        return frames * self.tokenizer.features.seconds_per_frame

    def position_name(self, codes: Tensor, position: int) -> str:
        return f"at {position / self.tokenizer.codes_per_second:.2f} s"

    def rate(self, bits: float, codes: Tensor) -> str:
        return f"{bits * self.tokenizer.codes_per_second / len(codes):.0f} bits per second"

    def sample_shape(self) -> tuple[int, ...] | None:
        return (round(DRAWN_SECONDS * self.tokenizer.codes_per_second),)
