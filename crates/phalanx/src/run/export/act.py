"""Probabilities of an agent's actions, from the file policy.json beside this one. Plain Python, no packages."""

import json
import math
import pathlib

POLICIES = json.loads(pathlib.Path(__file__).with_name("policy.json").read_text())


def probabilities(agent, seen):
    """`seen`: the states of the agent's `members`, in their order; or the numbers that its network reads."""
    own = POLICIES["agents"][agent]
    rule = own["rule"]
    if rule["kind"] == "table":
        row = 0
        for state, count in zip(seen, own["states"]):
            row = row * count + state
        return rule["probabilities"][row]
    if rule["kind"] == "linear":
        rows = [rule["weights"][named_row(term, seen)] for term in rule["terms"]]
        return softmax([sum(column) for column in zip(*rows)])
    network = POLICIES["networks"][rule["network"]]
    if rule["kind"] == "symbols":
        x = [number for state in seen for number in network["embedding"][state]]
    else:
        x = pooled(rule, network, seen) if rule["kind"] == "places" else [*seen, *rule.get("site", [])]
        if network["row_layer"]:
            width = len(x) // network["rows"]
            rows = [layer(network["row_layer"], x[k : k + width]) for k in range(0, len(x), width)]
            x = [max(0.0, number) for row in rows for number in row]
    for k, each in enumerate(network["layers"]):
        x = layer(each, [max(0.0, number) for number in x] if k else x)
    return softmax(x)


def named_row(term, states):
    def digit(d):
        return d["stride"] * min(d["cap"], sum(d["values"][states[m]] for m in d["members"]))

    return term["first"] + sum(map(digit, term["digits"]))


def pooled(rule, network, states):
    inputs = max(1, network["rows"]) * len((network["row_layer"] or network["layers"][0])["weights"])
    dimension = len(rule["places"][0])
    sums = [[0.0] * dimension for _ in range((inputs - len(rule["site"])) // dimension)]
    for state, place in zip(states, rule["places"]):
        sums[state] = [a + b for a, b in zip(sums[state], place)]
    return [number for row in sums for number in row] + rule["site"]


def layer(each, x):
    columns = zip(each["biases"], zip(*each["weights"]))
    return [bias + sum(a * b for a, b in zip(x, column)) for bias, column in columns]


def softmax(x):
    powers = [math.exp(number - max(x)) for number in x]
    return [power / sum(powers) for power in powers]
