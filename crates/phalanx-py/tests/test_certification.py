"""Certificates from Python: made, checked, and found to be changed."""

import json

import phalanx
import pytest

EASY = {"constraint": [{"kind": "state_entropy", "at_least": 0.1}], "iterations": 60}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return phalanx.certify("synthetic", out=tmp_path_factory.mktemp("certified"), episodes=400, **EASY)


def test_a_certificate_lists_every_constraint(made):
    assert made.is_certified and repr(made) == "<Certification: certified>"
    found = made.certificate
    assert [one["agent"] for one in found["constraints"]] == list(range(10))
    assert all(one["slack_at_least"] >= 0 for one in found["constraints"])
    assert (made.path / "certificate.html").is_file()


def test_a_check_repeats_every_number(made):
    path = made.path / "certificate.json"
    told = phalanx.check_certificate(path)
    assert told["repeated"] and told["holds"] and not told["failed"]
    assert phalanx.check_certificate(path, fresh=9)["holds"]


def test_an_edited_certificate_is_noticed(made, tmp_path):
    text = (made.path / "certificate.json").read_text()
    (tmp_path / "policy.safetensors").write_bytes((made.path / "policy.safetensors").read_bytes())
    (tmp_path / "certificate.json").write_text(text.replace('"confidence": 0.99', '"confidence": 0.999'))
    with pytest.raises(phalanx.ConfigError, match="is damaged"):
        phalanx.check_certificate(tmp_path / "certificate.json")


def test_a_bound_that_cannot_be_kept(tmp_path):
    found = phalanx.certify(
        "synthetic", out=tmp_path / "x", constraint=[{"kind": "state_entropy", "at_least": 0.7}]
    )
    assert not found.is_certified and found.certificate is None
    told = found.report["infeasible"]
    assert (told["agent"], told["threshold"]) == (0, 0.7) and abs(told["nearest"] - 0.6931471805599453) < 1e-9
    json.dumps(found.report)


def test_bad_arguments(tmp_path):
    with pytest.raises(phalanx.ConfigError, match="^confidence: 1.5"):
        phalanx.certify("synthetic", out=tmp_path / "y", confidence=1.5)
    with pytest.raises(phalanx.ConfigError, match="^max_attempts: 0"):
        phalanx.certify("synthetic", out=tmp_path / "y", max_attempts=0)


def test_a_run_is_judged_as_it_is(tmp_path):
    run = phalanx.train("synthetic", temporary=True, **EASY)
    found = phalanx.certify(run, out=tmp_path / "z", episodes=400)
    assert found.is_certified and found.certificate["attempt"] == 1
    with pytest.raises(phalanx.ConfigError, match="kappa: a run has its own settings"):
        phalanx.certify(run, out=tmp_path / "zz", kappa=2)
