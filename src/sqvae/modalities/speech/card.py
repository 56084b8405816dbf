"""What a model card says of a tokenizer of speech."""

from collections.abc import Iterator

from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.tokenizers.card import WHERE, listed


def usage(tokenizer: SpeechTokenizer, name: str) -> Iterator[str]:
    """How to use the model in Python and on the command line."""
    voice = tokenizer.speakers[0]
    yield from ("```python", "import sqvae", "")
    yield f'speech = sqvae.load("{name}")  # {WHERE}'
    yield 'units = speech.encode(["one.wav"])  # paths, or samples with their rate'
    yield f'frames = speech.decode(units, "{voice}")  # log-mel frames in dB, (frames, {tokenizer.features.mels})'
    yield "sound = speech.sound(frames[0])"
    yield from ("```", "", "```sh")
    yield f"sqvae encode {name} recordings -o units.safetensors"
    yield f"sqvae decode {name} units.safetensors -o spoken --speaker {voice} --audio"
    yield "```"


def code_rate(tokenizer: SpeechTokenizer, bits: float) -> Iterator[str]:
    """How many codes a second of speech becomes."""
    rate = tokenizer.codes_per_second
    yield f"- A second of speech becomes {rate:g} codes: {rate * bits:,.0f} bits at most."


def data_facts(tokenizer: SpeechTokenizer) -> Iterator[str]:
    """The features and the speakers."""
    features = tokenizer.features
    yield (
        f"- Sound of {features.rate:,} Hz as log-mel frames in dB: {features.mels} mels, "
        f"{features.rate / features.shift:g} frames a second (`{tokenizer.experiment.speech.features}`)."
    )
    yield f"- {len(tokenizer.speakers):,} speakers: {listed(tokenizer.speakers)}."


def limits(tokenizer: SpeechTokenizer) -> Iterator[str]:
    """What is known of voices and sound."""
    yield "- It speaks with the voices above and no others. Sound comes by Griffin-Lim; a neural vocoder is better."
