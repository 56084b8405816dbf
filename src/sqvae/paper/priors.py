"""What is to be said where samples and distances are shown."""

from sqvae.paper.artefact import Results

ENOUGH = 2_049
"""Pictures for covariances of Inception's features that are not singular."""


def about_priors(results: Results) -> list[str]:
    """Which priors samples are of, and on how many pictures distances stand.

    Arguments:
        results: of a second stage.
    """
    sequel = results.records[0].sequel or {}
    number, levels = sequel["pictures"], " on each level" if sequel["levels"] else ""
    few = (
        f"Distances are of {number} pictures. So few make covariances of Inception's 2,048 features singular, and "
        f"distances too large: they are to be compared with each other, and not with those of all pictures."
    )
    return [
        f"Samples are of a {sequel['prior']['name']} over each model's codes{levels}, trained for "
        f"{sequel['training']['epochs']} epochs each; the paper trains priors to the same likelihood. "
        f"samples-histogram and samples-uniform draw codes one by one. A VAE's samples are of its normal distribution.",
        *([few] if number is not None and number < ENOUGH else []),
    ]
