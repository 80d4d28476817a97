"""Are runs evaluated behind faulty links, their own or others?"""

import numpy as np
import phalanx
import pytest


@pytest.fixture(scope="module")
def run():
    return phalanx.train("wireless", iterations=3, batch=4, links={"loss": 0.3}, temporary=True)


def value(assessment):
    return assessment["objective"]["value"]


def test_own_links_count_unless_others_are_given(run):
    own = run.evaluate(40)
    assert repr(own) == repr(run.evaluate(40, links={"loss": 0.3}))
    assert value(own) == value(run.evaluate(40, links={"loss": np.float64(0.3)}))
    assert value(own) != value(run.evaluate(40, links={"loss": 0.9, "silent": [3, 7]}))


def test_wrong_links_are_refused(run):
    for links, words in [
        ({"loss": 2}, "links.loss: 2"),
        ({"lost": 0.1}, "lost"),
        ({"silent": [99]}, "no agent 99"),
        (0.1, "links: `float` is no dict"),
    ]:
        with pytest.raises(phalanx.ConfigError, match=words):
            run.evaluate(40, links=links)


def test_functions_are_not_behind_links():
    with pytest.raises(phalanx.ConfigError, match="links.loss"):
        phalanx.evaluate("synthetic", policy=lambda seen: dict.fromkeys(seen, 0), links={"loss": 0.1})
