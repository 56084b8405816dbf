"""Speech on the page of `sqvae explore`, looked at as spectrograms."""

from typing import Any

from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleView
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.speech.uploads import LONGEST, sound_from
from sqvae.modalities.speech.views import see_speech, see_units, spoken_alone
from sqvae.modalities.views import Seen
from sqvae.networks.speech import STRIDE
from sqvae.reports.sound import as_flac
from sqvae.runs import Generator

DRAWN_SECONDS = 2
"""The length of speech that is drawn from a prior."""


class SpeechView(ExampleView):
    """Speech, looked at as spectrograms."""

    noun = "recording"
    accept = "audio/*"
    wide = True
    nearest_shown = "what each sounds like alone"

    def __init__(self, tokenizer: SpeechTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.voices = tokenizer.speakers

    def read(self, content: bytes, name: str) -> Example:
        frames, samples, longer = sound_from(content, self.tokenizer.features)
        note = f"the first {LONGEST} seconds of it" if longer else ""
        return Example(frames, name, note=note, recorded=lambda: samples, samples=len(samples))

    def held_out(self, examples: Any, index: int) -> Example:
        features = self.tokenizer.features
        frames, most = examples.frames(index), round(LONGEST / features.seconds_per_frame)
        voice = examples.speakers[index]
        samples = int(examples.samples[index]) if len(frames) <= most else (most - 1) * features.shift
        return Example(
            frames[:most],
            f"held-out utterance {index + 1:,} of {len(examples):,}, by {voice}",
            voice if voice in self.voices else None,
            f"the first {LONGEST} seconds of it" if len(frames) > most else "",
            lambda: examples.sound(index, features.rate, samples),
            samples,
        )

    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        return see_speech(self.tokenizer, example.data, example.voice, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return see_units(self.tokenizer, codes)

    def alone(self, codes: Tensor) -> Tensor:
        return spoken_alone(self.tokenizer, codes)

    def sound(self, example: Example, codes: Tensor) -> bytes:
        """What codes sound like, as FLAC."""
        frames = self.tokenizer.decode([codes], example.voice or self.voices[0], [len(example.data)])[0]
        return as_flac(
            self.tokenizer.sound(frames, samples=example.samples).cpu().numpy(), self.tokenizer.features.rate
        )

    def original(self, example: Example) -> bytes | None:
        """What was recorded, as FLAC; None where it can't be had."""
        if example.recorded is None:
            return None
        try:
            return as_flac(example.recorded(), self.tokenizer.features.rate)
        except (OSError, ValueError):  # its file may have gone since
            return None

    def columns(self, codes: Tensor) -> int:
        return len(codes)

    def box(self, codes: Tensor, place: int) -> Box:
        return Box(STRIDE * place, 0, STRIDE, self.tokenizer.features.mels)

    def seconds(self, frames: int) -> float:
        return frames * self.tokenizer.features.seconds_per_frame

    def place_name(self, codes: Tensor, place: int) -> str:
        return f"at {place / self.tokenizer.codes_per_second:.2f} s"

    def rate(self, bits: float, codes: Tensor) -> str:
        return f"{bits * self.tokenizer.codes_per_second / len(codes):.0f} bits a second"

    def shape_drawn(self) -> tuple[int, ...] | None:
        return (round(DRAWN_SECONDS * self.tokenizer.codes_per_second),)
