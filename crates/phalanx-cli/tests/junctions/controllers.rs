//! Do scripted controllers have the travel times, rewards and broken rules that a CityFlow of its own gave
//! for them on the road networks of Jinan, Hangzhou and New York? These may not be copied, so the tests need
//! the folder beside the checkout.

use serde_json::Value;

use super::{phalanx, support};

/// The road network and the flows of a benchmark, by its usual name.
fn files_of(benchmark: &str) -> [&'static str; 2] {
    match benchmark {
        "JN1" => ["jinan", "flow.json"],
        "JN2" => ["jinan", "flow_2000.json"],
        "JN3" => ["jinan", "flow_2500.json"],
        "HZ1" => ["hangzhou", "flow.json"],
        "HZ2" => ["hangzhou", "flow_5816.json"],
        "NY48" => ["newyork", "flow.json"],
        other => panic!("{other} is unknown"),
    }
}

/// The public networks as files in a folder; nothing where there are none.
struct Networks(tempfile::TempDir);

impl Networks {
    fn unpack() -> Option<Self> {
        let data = support::beside_the_checkout()?;
        let folder = tempfile::tempdir().unwrap();
        for benchmark in ["JN1", "JN2", "JN3", "HZ1", "HZ2", "NY48"] {
            let [net, flow] = files_of(benchmark);
            for file in ["roadnet.json", flow] {
                let path = folder.path().join(format!("{net}-{file}"));
                std::fs::write(path, support::net_file(&data, net, file)).unwrap();
            }
        }
        Some(Networks(folder))
    }

    /// What `phalanx eval` measures of a controller in an hour of the files' own traffic.
    fn eval(&self, benchmark: &str, policy: &str, [decision, yellow, phases]: [u32; 3]) -> Value {
        let [net, flow] = files_of(benchmark);
        let path = |file: &str| self.0.path().join(format!("{net}-{file}")).display().to_string();
        let config = format!(
            "gamma = 0.95\nhorizon = {}\nkappa = 0\n[world]\nkind = \"junctions\"\nroadnet = {:?}\nflow = {:?}\n\
             decision = {decision}\nyellow = {yellow}\nphases = {phases}\n\
             [objective]\nkind = \"return\"\nchannel = \"reward\"\n",
            3600 / decision,
            path("roadnet.json"),
            path(flow)
        );
        let file = self.0.path().join("config.toml");
        std::fs::write(&file, config).unwrap();
        let file = file.display().to_string();
        let output = phalanx(&["eval", &file, "--policy", policy, "--episodes", "3", "--json"]);
        assert!(output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Rows of a reference file by column.
fn rows(text: &str) -> impl Iterator<Item = Vec<(&str, &str)>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(move |line| names.iter().copied().zip(line.split(',')).collect())
}

/// The digits of `wanted`.
fn shown(value: f64, wanted: &str) -> String {
    let digits = wanted.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{value:.digits$}")
}

#[test]
fn travel_times_are_the_reference_ones() {
    let Some(networks) = Networks::unpack() else { return };
    for row in rows(include_str!("reference/travel-time.csv")) {
        let policy = row[0].1;
        let protocol = [1, 2, 3].map(|column| row[column].1.parse().unwrap());
        for &(benchmark, wanted) in &row[4..] {
            let found = networks.eval(benchmark, policy, protocol)["travel_time"].as_f64().unwrap();
            assert_eq!(shown(found, wanted), wanted, "{policy} {protocol:?} on {benchmark}");
        }
    }
}

/// The reference is with lane changes, which move it by less than a hundredth.
#[test]
fn travel_times_of_the_tables_are_near() {
    let Some(networks) = Networks::unpack() else { return };
    for row in rows(include_str!("reference/travel-time-tables.csv")) {
        let policy = row[0].1;
        for &(benchmark, wanted) in &row[1..] {
            let found = networks.eval(benchmark, policy, [15, 5, 4])["travel_time_tables"].as_f64().unwrap();
            let wanted: f64 = wanted.parse().unwrap();
            assert!((found / wanted - 1.0).abs() < 0.01, "{policy} on {benchmark}: {found}, not {wanted}");
        }
    }
}

#[test]
fn rewards_and_broken_rules_are_the_reference_ones() {
    let Some(networks) = Networks::unpack() else { return };
    for row in rows(include_str!("reference/rules.csv")) {
        let (policy, benchmark) = (row[0].1, row[1].1);
        let found = networks.eval(benchmark, policy, [10, 5, 8]);
        for &(column, wanted) in &row[2..] {
            let value = match column {
                "reward" => &found["return"]["value"],
                "travel_time" | "longest_red" => &found[column],
                rule => &found["channel_means"][rule],
            };
            let value = value.as_f64().unwrap_or_else(|| panic!("{column} of {found}"));
            assert_eq!(shown(value, wanted), wanted, "{column} of {policy} on {benchmark}");
        }
    }
}

/// All reference files have all their cells: 66 travel times, 20 of the tables' kind, 30 rows of rules.
#[test]
fn the_reference_is_whole() {
    let cells = |text: &str| rows(text).map(|row| row.len()).collect::<Vec<_>>();
    assert_eq!(cells(include_str!("reference/travel-time.csv")), [10; 11]);
    assert_eq!(cells(include_str!("reference/travel-time-tables.csv")), [6; 4]);
    assert_eq!(cells(include_str!("reference/rules.csv")), [8; 30]);
}
