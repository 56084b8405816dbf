"""A trained model of speech, ready for use: recordings to units, and back to frames and to sound."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.config import ConfigurationError, Experiment, nearest
from sqvae.data.speech import LogMel, SpeechProcessor, griffin_lim
from sqvae.data.speech.processing import Recordings
from sqvae.modalities.speech.assembly import build_speech_model, features_of
from sqvae.models import Speech, SpeechModel, padded
from sqvae.networks import without_batch_norm
from sqvae.networks.speech import STRIDE
from sqvae.tokenizers import Stored, Tokenizer, with_weights

Codes: TypeAlias = Tensor | NDArray[Any] | Sequence[int] | Sequence[Tensor | NDArray[Any] | Sequence[int]]
"""Of one utterance, (n,), or of several: (utterances, n), or a list."""

REACH = 8
"""Encodings on either side that one depends on, and a few more."""

CHUNK = 2048
"""Encodings that are made at a time of a long recording."""


class SpeechTokenizer(Tokenizer):
    """A trained model of speech. :func:`sqvae.load` makes one."""

    model: SpeechModel

    def _folded(self) -> SpeechModel:
        model = self.model
        encoder: Any = without_batch_norm(model.encoder)
        return SpeechModel(
            encoder, model.quantizer, model.decoder, model.likelihood, offset=model.offset, scale=model.scale
        )

    @property
    def features(self) -> LogMel:
        """How recordings become frames."""
        return features_of(self.experiment)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Those whose voices it knows."""
        return self.experiment.speech.speakers or ()

    @property
    def codes_per_second(self) -> float:
        """Two frames to a code."""
        return self.features.rate / self.features.shift / STRIDE

    def speaker(self, name: str) -> int:
        """The number of a speaker."""
        if not isinstance(name, str):
            raise TypeError(f"a speaker is named by a text, such as {self.speakers[0]!r}; got {name!r}")
        if name not in self.speakers:
            shown = ", ".join(self.speakers[:20]) + (", ..." if len(self.speakers) > 20 else "")
            raise ConfigurationError(
                f"this model does not know the speaker {name!r}{nearest(name, self.speakers)}; it knows {shown}"
            )
        return self.speakers.index(name)

    @property
    def preprocess(self) -> SpeechProcessor:
        """What brings recordings to frames: call it with one or several, as paths or samples."""
        return SpeechProcessor(self.features)

    def encode(
        self, recordings: Recordings, rate: int | None = None, *, layers: int | None = None
    ) -> list[Tensor]:  # -> (n,), each; with layers (n, layers)
        """The likeliest codes of recordings: those that ``sqvae encode`` gives for the same files.

        Arguments:
            recordings: paths, arrays or tensors of samples, (samples,) or (samples, channels), or pairs of samples and
                their rate; one, or a list of any of them.
            rate: samples a second of those that come without; None: as many as the features have, ``features.rate``.
                Samples of another rate need it; files know their own.
            layers: of a model with layers, only the first of them.
        """
        utterances = self.preprocess(recordings, rate)
        if max(map(len, utterances)) <= STRIDE * CHUNK:
            return self.encode_frames(utterances, layers=layers)
        return [torch.cat(list(self.encode_pieces([frames], layers=layers))) for frames in utterances]

    def encode_frames(
        self, utterances: Sequence[Tensor], *, layers: int | None = None
    ) -> list[Tensor]:  # (T, mels) -> (n,), each: n = ceil(T / 2)
        """The likeliest codes of utterances of any lengths; together or one by one, they are the same."""
        _ = self.codebook_size
        with torch.inference_mode():
            codes = self.inference_model.encode(self._batch(utterances))
        return self._apart(self.first_layers(codes, layers), utterances)

    def encodings(
        self, utterances: Sequence[Tensor] | Recordings, rate: int | None = None
    ) -> list[Tensor]:  # (T, mels) -> (n, dim), each
        """The same before quantization, of frames, or of what :meth:`encode` takes."""
        utterances = self._frames(utterances, rate)
        with torch.inference_mode():
            encodings = self.inference_model.encodings(self._batch(utterances))
        return self._apart(encodings, utterances)

    def encode_pieces(
        self, pieces: Iterable[Tensor], *, layers: int | None = None
    ) -> Iterator[Tensor]:  # (T, mels), ... -> (n,), ...
        """The codes of one long recording whose frames come piece by piece, in flat memory: as if it came at once."""
        for frames, first, last in _overlapping(pieces):
            codes = self.encode_frames([frames], layers=layers)[0]
            yield codes[first : len(codes) if last is None else last]

    def vectors(self, codes: Tensor) -> Tensor:  # (n,) -> (n, dim)
        """What codes stand for."""
        with torch.inference_mode():
            return self.model.quantizer.decode(codes.to(self.device), channel_first=False)

    def decode(
        self, codes: Codes, speakers: str | Sequence[str], lengths: Sequence[int] | None = None
    ) -> list[Tensor]:  # (n,) -> (T, mels), each
        """The frames, in dB, that codes stand for in speakers' voices.

        Arguments:
            codes: of utterances of any lengths, in a list as :meth:`encode` gives them, or (utterances, n) of equally
                long ones; or of one utterance, (n,), for which the result is a list of 1. With layers there is one
                axis more, the last, of all or the first of them.
            speakers: one for each utterance, or one for all.
            lengths: the number of frames of each; None: two for each code.
        """
        codes = self._each(codes)
        frames = [STRIDE * len(one) for one in codes] if lengths is None else list(lengths)
        if len(frames) != len(codes):
            raise ValueError(f"there must be one length for each of {len(codes)} utterances; got {len(frames)}")
        for one, length in zip(codes, frames, strict=True):
            if not len(one) or not 0 <= STRIDE * len(one) - length < STRIDE:
                raise ValueError(f"{len(one)} codes stand for {STRIDE * len(one)} frames, or one less; not {length}")
        if not codes:
            return []
        batch = torch.nn.utils.rnn.pad_sequence(codes, batch_first=True).to(self.device)
        with torch.inference_mode():
            decoded = self.inference_model.decode(
                batch, self._who(speakers, len(codes)), torch.tensor(frames, device=self.device)
            )
        return [rows[:length].cpu() for rows, length in zip(decoded, frames, strict=True)]

    def reconstruct(
        self,
        utterances: Sequence[Tensor] | Recordings,
        speakers: str | Sequence[str],
        rate: int | None = None,
        *,
        layers: int | None = None,
    ) -> list[Tensor]:  # (T, mels) -> (T, mels), each
        """Frames, in dB, or what :meth:`encode` takes, after a round trip through their codes, in speakers' voices."""
        utterances = self._frames(utterances, rate)
        if layers is not None:
            return self.decode(
                self.encode_frames(utterances, layers=layers), speakers, [len(one) for one in utterances]
            )
        x = self._batch(utterances)._replace(speakers=self._who(speakers, len(utterances)))
        with torch.inference_mode():
            made = self.inference_model.reconstruct(x)
        return [rows[: len(frames)].cpu() for rows, frames in zip(made, utterances, strict=True)]

    def _each(self, codes: Any) -> list[Tensor]:  # -> (n,), each
        """The codes of each utterance, whether one is given or several."""
        axes = 1 + len(self.layer_axis)
        if isinstance(codes, np.ndarray | Tensor):
            several = [codes] if codes.ndim == axes else list(codes)
        else:
            several = list(codes)
            if several and _axes_of(several) == axes:
                several = [several]
        found = [torch.as_tensor(one).cpu() for one in several]
        for index, one in enumerate(found):
            if one.ndim != axes or one.is_floating_point() or one.is_complex() or one.dtype == torch.bool:
                layout = "(n,)" if self.layers is None else "(n, layers)"
                raise ValueError(
                    f"the codes of utterance {index} must be whole numbers, {layout}; got {one.dtype} of the shape "
                    f"{tuple(one.shape)}"
                )
        return [self._in_codebook(one.long(), index) for index, one in enumerate(found)]

    def _in_codebook(self, codes: Tensor, index: int) -> Tensor:  # (n,) -> (n,)
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < self.codebook_size:
            raise ValueError(
                f"codes must be at least 0 and below {self.codebook_size}; those of utterance {index} lie between "
                f"{int(codes.min())} and {int(codes.max())}"
            )
        return codes

    def _who(self, speakers: str | Sequence[str], number: int) -> Tensor:  # -> (number,)
        if not isinstance(speakers, Iterable):
            self.speaker(speakers)  # which says what is wrong
        names = [speakers] * number if isinstance(speakers, str) else list(speakers)
        if len(names) != number:
            raise ValueError(f"there must be one speaker for each of {number} utterances, or one for all; got {names}")
        return torch.tensor([self.speaker(name) for name in names], device=self.device)

    def sound(self, frames: Tensor, *, samples: int | None = None, seed: int = 0) -> Tensor:  # (T, mels) -> (samples,)
        """Sound for the frames of one utterance by the method of Griffin and Lim. A neural vocoder sounds better."""
        if not isinstance(frames, np.ndarray | Tensor) or frames.ndim != 2:
            given = f"the shape {tuple(frames.shape)}" if hasattr(frames, "shape") else f"a {type(frames).__name__}"
            raise ValueError(
                f"sound is made of one utterance's frames at a time, (frames, {self.features.mels}); got {given}: "
                "call sound for each"
            )
        return griffin_lim(torch.as_tensor(frames), self.features, samples=samples, seed=seed)

    def _frames(self, given: Any, rate: int | None) -> Sequence[Tensor]:
        """Frames as they are; of recordings, theirs."""
        are_frames = isinstance(given, Sequence) and all(isinstance(one, Tensor) and one.ndim == 2 for one in given)
        return given if are_frames else self.preprocess(given, rate)

    def _batch(self, utterances: Sequence[Tensor]) -> Speech:
        if not len(utterances):
            raise ValueError("there are no utterances: give at least one")
        for frames in utterances:
            if frames.ndim != 2 or frames.shape[1] != self.features.mels or not len(frames):
                raise ValueError(
                    f"utterances must be (frames, {self.features.mels}), with at least one frame; got shape "
                    f"{tuple(frames.shape)}"
                )
        nobody = torch.zeros(len(utterances), dtype=torch.int64, device=self.device)
        return padded([torch.as_tensor(frames, device=self.device).float() for frames in utterances], nobody)

    def _apart(self, rows: Tensor, utterances: Sequence[Tensor]) -> list[Tensor]:
        return [row[: -(-len(frames) // STRIDE)].cpu() for row, frames in zip(rows, utterances, strict=True)]


def _axes_of(codes: Any) -> int:
    """The number of axes of codes in lists, down to whole numbers; -1 for other things."""
    if isinstance(codes, int | np.integer):
        return 0
    if isinstance(codes, np.ndarray | Tensor):
        return int(codes.ndim)
    if not isinstance(codes, Sequence) or not codes or (below := _axes_of(codes[0])) < 0:
        return -1
    return 1 + below


def _overlapping(pieces: Iterable[Tensor]) -> Iterator[tuple[Tensor, int, int | None]]:
    """Frames in chunks that overlap by what an encoding depends on.

    With each come the first of its encodings that is to be kept, and the first after those; None: all to its end.
    """
    waiting: list[Tensor] = []
    number, first = 0, 0
    for piece in pieces:
        waiting.append(piece)
        number += len(piece)
        if number >= STRIDE * (CHUNK + 2 * REACH):
            frames = torch.cat(waiting)
            # Beyond the last but REACH, an encoding would take the chunk's end for the recording's.
            last = len(frames) // STRIDE - REACH
            yield frames, first, last
            waiting = [frames[STRIDE * (last - REACH) :]]
            number, first = len(waiting[0]), REACH
    if number:
        yield torch.cat(waiting), first, None


def load_speech_tokenizer(
    name: str | Path, *, device: str | torch.device | None = None, **download: Any
) -> SpeechTokenizer:
    """A tokenizer of speech: see :func:`sqvae.load`."""
    return SpeechTokenizer.from_pretrained(name, device=device, **download)


def tokenizer_of(stored: Stored, name: str | Path, device: str | torch.device | None) -> SpeechTokenizer:
    """A tokenizer from a stored model."""
    model, mark = with_weights(partial(build_speech_model, stored.experiment), stored.checkpoint, name, device)
    return SpeechTokenizer(model, stored.experiment, mark, stored.history(mark))


def untrained_speech_tokenizer(experiment: Experiment) -> SpeechTokenizer:
    """A tokenizer whose model has not begun to train."""
    return SpeechTokenizer(build_speech_model(experiment), experiment, "")
