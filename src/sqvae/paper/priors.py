"""Notes on priors, samples and Fréchet distances."""

from sqvae.paper.artefact import Results

ENOUGH = 2_049
"""The number of images for which the covariance of Inception features is not singular."""


def about_priors(results: Results) -> list[str]:
    """Notes on the priors of samples, and on the number of images of distances.

    Arguments:
        results: the results of a second stage.
    """
    sequel = results.records[0].sequel or {}
    number, levels = sequel["pictures"], " on each level" if sequel["levels"] else ""
    few = (
        f"Distances are measured on {number} images. With so few, the covariance of Inception's 2,048 features is "
        "singular, and distances are too large: compare them with each other only, and not with those of all images."
    )
    return [
        f"Samples are drawn from a {sequel['prior']['name']} over each model's codes{levels}, trained for "
        f"{sequel['training']['epochs']} epochs each; the paper trains priors to the same likelihood. "
        "samples-histogram and samples-uniform draw each code independently. A VAE's samples are drawn from its "
        "normal prior.",
        *([few] if number is not None and number < ENOUGH else []),
    ]
