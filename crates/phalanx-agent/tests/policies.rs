//! Is a file of policies that cannot be used refused, with what is wrong?

use phalanx_agent::policy::Policies;

/// Two agents of two states; agent 0 has a table, agent 1 weights.
const GOOD: &str = r#"{"format": "phalanx-policy", "version": 1, "kappa": 1,
 "networks": [{"rows": 0, "row_layer": null, "embedding": [[1.0], [0.5]],
               "layers": [{"weights": [[1.0, 0.0], [0.0, 2.0]], "biases": [0.0, 0.0]}]}],
 "agents": [
  {"agent": 0, "neighbours": [1], "members": [0, 1], "states": [2, 2], "usual": [0, 1], "actions": 2,
   "rule": {"kind": "table", "probabilities": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.1, 0.9]]}},
  {"agent": 1, "neighbours": [0], "members": [0, 1], "states": [2, 2], "usual": [0, 0], "actions": 2,
   "rule": {"kind": "linear", "weights": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], "terms": [
     {"first": 0, "digits": [{"stride": 1, "cap": 2, "members": [0, 1], "values": [0, 1]}]}]}}]}"#;

#[test]
fn what_can_be_used_is_read() {
    let policies = Policies::read(GOOD).unwrap();
    let written = serde_json::to_string_pretty(&policies).unwrap();
    let again = Policies::read(&written).unwrap();
    assert_eq!((&again, again.checksum()), (&policies, policies.checksum()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = r#"{"kind": "table", "probabilities": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.1, 0.9]]}"#;
    let symbols = r#"{"kind": "symbols", "network": 0}"#;
    assert!(Policies::read(&GOOD.replace(table, symbols)).is_ok());
    let places = r#"{"kind": "places", "network": 0, "places": [[1.0], [1.0]], "site": []}"#;
    assert!(Policies::read(&GOOD.replace(table, places)).is_ok());
    for (from, to, words) in [
        ("phalanx-policy", "policy", "format is `policy`"),
        ("\"version\": 1", "\"version\": 2", "version 2"),
        ("\"kappa\": 1", "\"kappa\": 64", "at most 63"),
        ("\"kappa\": 1", "\"kappa\": 0", "agent 0: members are not the agents within 0 hops"),
        ("\"agent\": 1,", "\"agent\": 0,", "agent 1: is numbered 0"),
        ("\"neighbours\": [1]", "\"neighbours\": [2]", "agent 2 cannot be a neighbour"),
        ("\"neighbours\": [1]", "\"neighbours\": [1, 1]", "neighbours do not ascend"),
        ("\"neighbours\": [1]", "\"neighbours\": []", "does not know it"),
        ("\"members\": [0, 1], \"states\"", "\"members\": [0], \"states\"", "members are not"),
        ("\"states\": [2, 2]", "\"states\": [2]", "members and states differ"),
        ("\"states\": [2, 2]", "\"states\": [0, 2]", "0 states; allowed are 1 to 256"),
        ("\"usual\": [0, 1]", "\"usual\": [0]", "members and usual differ"),
        ("\"usual\": [0, 1]", "\"usual\": [0, 2]", "state 2 of 2"),
        ("\"actions\": 2", "\"actions\": 0", "0 actions"),
        ("\"actions\": 2", "\"actions\": 3", "a row of 2 numbers for 3 actions"),
        ("[0.5, 0.5], ", "", "3 rows of probabilities"),
        ("[0.5, 0.5]", "[0.5, -0.5]", "a row is no law"),
        ("[1.0, 0.0], [0.0, 1.0]", "[1.0, 0.0], [0.0, 0.0]", "a row is no law"),
        ("\"cap\": 2", "\"cap\": 3", ""),
        ("\"values\": [0, 1]", "\"values\": [0, 9]", ""),
        ("\"first\": 0", "\"first\": 1", "a term names row 3, and there are 3"),
        ("\"stride\": 1", "\"stride\": 18446744073709551615", "a term names row"),
        ("\"members\": [0, 1], \"values\"", "\"members\": [0, 2], \"values\"", "cannot read member 2"),
        ("\"values\": [0, 1]", "\"values\": [0]", "cannot read member 0"),
        ("\"biases\": [0.0, 0.0]", "\"biases\": [0.0]", "network 0: weights and biases"),
        ("\"embedding\": [[1.0], [0.5]]", "\"embedding\": [[1.0], []]", "embeddings differ"),
        ("[1.0, 0.0], [0.0, 2.0]", "[1e39, 0.0], [0.0, 2.0]", "number out of range"),
        (table, r#"{"kind": "symbols", "network": 1}"#, "there is no network 1"),
        (table, r#"{"kind": "places", "network": 0, "places": [[1.0]], "site": []}"#, "members and places"),
        (table, r#"{"kind": "places", "network": 0, "places": [[1.0], [1.0]], "site": [1.0]}"#, "not 3"),
        ("{\"format\"", "{{\"format\"", "no policies"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        match Policies::read(&text) {
            Err(error) => assert!(!words.is_empty() && error.to_string().contains(words), "{to}: {error}"),
            Ok(_) => assert!(words.is_empty(), "{to} is read"),
        }
    }
}
