//! Bad input gets exit status 2 and one clear line, with nothing written.
//!
//! The real binary runs in a temporary folder with three files that work (`line.toml`, `table.toml`,
//! `model.json`); every entry of [`broken_inputs`] breaks one thing. The closing tests are about the two
//! neighbours of that contract: bounds that are out of reach on purpose, and presets, which are good input.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_phalanx");

const LINE: &str = r#"
iterations = 2
horizon = 10
batch = 2
[world]
kind = "line"
n = 4
[objective]
kind = "return"
[[constraint]]
kind = "state_entropy"
at_least = 0.1
[critic]
steps = 20
[evaluation]
episodes = 4
"#;

const TABLE: &str = r#"
iterations = 2
horizon = 10
batch = 2
[world]
kind = "table"
file = "model.json"
[critic]
steps = 20
[evaluation]
episodes = 4
"#;

const MODEL: &str = r#"{
    "n": 2,
    "gamma": 0.9,
    "state_sizes": [2, 3],
    "action_sizes": [2, 1],
    "edges": [[0, 1]],
    "parents": [[0], [1]],
    "transition": [
        [0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1],
        [0.2, 0.3, 0.5, 1, 0, 0, 0, 0.4, 0.6]
    ],
    "rho": {"kind": "product", "local": [[0.55, 0.45], [0.1, 0.7, 0.2]]},
    "f": [{"kind": "linear", "r": [0, 0, 1, 1]}, {"kind": "state_entropy"}]
}"#;

/// Parts of the model that entries replace or leave out.
const START_LAW: &str = r#"{"kind": "product", "local": [[0.55, 0.45], [0.1, 0.7, 0.2]]}"#;
const OBJECTIVES: &str = r#""f": [{"kind": "linear", "r": [0, 0, 1, 1]}, {"kind": "state_entropy"}]"#;

const MODEL_TOML: &str = r#"
n = 1
gamma = 0.9
state_sizes = [2]
action_sizes = [1]
edges = []
parents = [[0]]
transition = [[0.25, 0.75, 1.0, 0.0]]
rho = { kind = "product", local = [[0.5, 0.5]] }
f = [{ kind = "linear", r = [0.0, 2.0], scale = 3.0 }]
"#;

const EXPERT: &str = r#"{"gamma": 0.99, "lambda": [
    [25, 25, 25, 25], [25, 25, 25, 25], [25, 25, 25, 25], [25, 25, 24, 26]
]}"#;

/// One mistake.
struct Broken {
    name: String,
    /// Files beside the three that work, or in their place.
    files: Vec<(&'static str, Vec<u8>)>,
    arguments: Vec<String>,
    /// What the message must contain: the field or file, the value, what is allowed.
    words: Vec<String>,
}

/// A command line, separated by spaces; the message must contain all of `words`, separated by ` … `.
fn called(name: &str, arguments: &str, words: &str) -> Broken {
    Broken {
        name: name.into(),
        files: Vec::new(),
        arguments: arguments.split(' ').map(Into::into).collect(),
        words: words.split(" … ").map(Into::into).collect(),
    }
}

/// `line.toml` with settings, separated by spaces.
fn line(name: &str, settings: &str, words: &str) -> Broken {
    let settings = settings.split(' ').filter(|setting| !setting.is_empty());
    settings.fold(called(name, "train line.toml", words), Broken::set)
}

/// `wireless.toml` with settings, separated by spaces.
fn wireless(name: &str, settings: &str, words: &str) -> Broken {
    let broken = called(name, "train wireless.toml", words).with("wireless.toml", wireless_config());
    settings.split(' ').fold(broken, Broken::set)
}

/// The preset `pistonball` with settings, separated by spaces.
fn pistons(name: &str, settings: &str, words: &str) -> Broken {
    settings.split(' ').fold(called(name, "train pistonball", words), Broken::set)
}

/// The preset `epidemic` with settings, separated by spaces.
fn epidemic(name: &str, settings: &str, words: &str) -> Broken {
    settings.split(' ').fold(called(name, "train epidemic", words), Broken::set)
}

/// `epidemic.toml`: four agents, whose network is to be said, with settings, separated by spaces.
fn contacts(name: &str, settings: &str, words: &str) -> Broken {
    let text = replaced(LINE, "kind = \"line\"\nn = 4\n", "kind = \"epidemic\"\n");
    let broken = called(name, "train epidemic.toml", words).with("epidemic.toml", text);
    settings.split(' ').filter(|setting| !setting.is_empty()).fold(broken, Broken::set)
}

/// A configuration that works: four users who share an access point.
fn wireless_config() -> String {
    let world = "kind = \"wireless\"\nrows = 2\ncolumns = 2\n";
    let text = replaced(LINE, "kind = \"line\"\nn = 4\n", world);
    replaced(&text, "kind = \"return\"", "kind = \"return\"\nchannel = \"send\"\nscale = -1.0")
}

/// `line.toml` with another text.
fn config(name: &str, text: impl Into<Vec<u8>>, words: &str) -> Broken {
    called(name, "train line.toml", words).with("line.toml", text)
}

/// `table.toml` with one place of its model changed; the message must name the file.
fn model(name: &str, from: &str, to: &str, words: &str) -> Broken {
    called(name, "train table.toml", words).with("model.json", replaced(MODEL, from, to)).says("model.json")
}

/// As [`model`], for the model in TOML.
fn toml_model(name: &str, from: &str, to: &str, words: &str) -> Broken {
    called(name, "train table.toml", words)
        .set("world.file=model.toml")
        .with("model.toml", replaced(MODEL_TOML, from, to))
        .says("model.toml")
}

/// An objective that imitates `expert.json`, with one place of that file changed.
fn expert(name: &str, from: &str, to: &str, words: &str) -> Broken {
    line(name, "objective.kind=neg_l2sq_expert objective.file=expert.json", words)
        .with("expert.json", replaced(EXPERT, from, to))
}

/// `phalanx exact` of `case.json` with one place changed; the message must name the file.
fn case(name: &str, from: &str, to: &str, words: &str) -> Broken {
    called(name, "exact case.json", words)
        .with("case.json", replaced(&whole_case(), from, to))
        .says("case.json")
}

/// A case that works: the model with constraints, parameters and multipliers.
fn whole_case() -> String {
    let model = MODEL.trim_end().trim_end_matches('}');
    let constraints = r#""g": [[{"kind": "state_entropy", "offset": -0.1}], []]"#;
    format!(
        r#"{{"input": {{"name": "pair", "format": 1, "model": {model}, {constraints}}}, "kappa": 0, "kappa_q": 1,
        "theta": [[0.5, -0.5, 0.25, 0], [0, 0, 0]], "mu": [[1.5], []], "mu_bar": 5, "box": [-2, 2],
        "estimator": {{"B": 200, "H": 60, "delta0": 0.001, "eps0": 0.05}},
        "algorithm": {{"T": 3, "eta_mu": 8.0, "eta_theta": 0.5}}}}}}"#
    )
}

/// `phalanx sweep` of `sweep.toml` with this text behind its base, `line.toml`.
fn sweep(name: &str, text: &str, words: &str) -> Broken {
    let text = format!("base = \"line.toml\"\n{text}\n");
    called(name, "sweep sweep.toml", words).with("sweep.toml", text).says("sweep.toml")
}

/// Sweeps: the file itself, and settings that one of the runs would refuse.
fn broken_sweeps() -> Vec<Broken> {
    let whole = "base = \"line.toml\"\n[grid]\nkappa = [0, 1]";
    let base = |name: &str, text: &str, words: &str| {
        called(name, "sweep sweep.toml", words).with("sweep.toml", text)
    };
    vec![
        called("no such sweep", "sweep nosuch.toml", "nosuch.toml … cannot be read"),
        base("an empty sweep", "", "sweep.toml … base is missing"),
        base("a base that is a number", "base = 3", "sweep.toml … base … 3"),
        base("no such base", "base = \"nosuch\"", "sweep.toml … base … nosuch … synthetic"),
        base("no such base file", "base = \"nosuch.toml\"", "nosuch.toml … cannot be read"),
        base("a sweep that is cut off", "base = \"line.toml\"\n[grid", "sweep.toml … line 2"),
        sweep(
            "an unknown key of a sweep",
            "grids = 3",
            "`grids` is unknown … base, seeds, noise, set, grid, random",
        ),
        sweep("no seeds", "seeds = []", "seeds … the list is empty"),
        sweep("seeds = 0", "seeds = 0", "seeds: 0; allowed are 1"),
        sweep("seeds < 0", "seeds = [1, -2]", "seeds … -2 … at least 0"),
        sweep("a seed twice", "seeds = [1, 2, 1]", "seeds: 1 is there twice"),
        sweep("seeds in words", "seeds = \"many\"", "seeds … many … a list"),
        sweep("unknown noise", "noise = \"loud\"", "noise … loud … own … shared"),
        sweep("a grid that is no section", "grid = 3", "grid: 3; a section"),
        sweep("an empty list", "[grid]\nkappa = []", "grid.kappa: the list is empty"),
        sweep("no list", "[grid]\nkappa = 1", "grid.kappa: 1 is not a list; write [1]"),
        sweep("a value twice", "[grid]\nkappa = [1, 0, 1]", "grid.kappa: 1 is there twice"),
        sweep("the seed in a grid", "[grid]\nseed = [1, 2]", "grid.seed … seeds = "),
        sweep(
            "a key in two places",
            "[set]\nkappa = 1\n[grid]\nkappa = [0, 1]",
            "grid.kappa … in [set] already",
        ),
        sweep("an unknown setting", "[grid]\nkapa = [0, 1]", "setting kapa=0: … unknown field `kapa`"),
        sweep("an unknown setting of all", "[set]\nkapa = 1", "unknown field `kapa`"),
        sweep(
            "one bad value",
            "[grid]\nkappa = [0, 1]\ngamma = [0.9, 1.5]",
            "setting kappa=0,gamma=1.5: gamma: 1.5",
        ),
        sweep("no such entry", "[grid]\n\"constraint.3.at_least\" = [0.1]", "there is no entry 3"),
        sweep(
            "a bound out of reach",
            "[grid]\n\"constraint.0.at_least\" = [0.1, 0.9]",
            "setting constraint.0.at_least=0.9: constraint.0",
        ),
        sweep(
            "no agents in one setting",
            "[grid]\nkappa = [0]\n\"world.n\" = [4, 0]",
            "setting kappa=0,world.n=0: world.n",
        ),
        sweep(
            "too many runs",
            "seeds = 1000\n[random]\nsamples = 1000\nkappa = [0, 1]",
            "more than 100000 runs",
        ),
        sweep("no number of samples", "[random]\nkappa = [0, 1]", "random.samples is missing"),
        sweep("no samples", "[random]\nsamples = 0\nkappa = [0, 1]", "random.samples: 0; allowed are 1"),
        sweep("nothing to draw", "[random]\nsamples = 2", "no key to draw"),
        sweep("an empty choice", "[random]\nsamples = 2\nkappa = []", "random.kappa: the list is empty"),
        sweep("neither list nor range", "[random]\nsamples = 2\nkappa = 1", "random.kappa: 1; a list or"),
        sweep("half a range", "[random]\nsamples = 2\nkappa = { low = 1 }", "random.kappa.high is missing"),
        sweep(
            "no range",
            "[random]\nsamples = 2\nkappa = { low = 2, high = 1 }",
            "low = 2 is not below high = 1",
        ),
        sweep(
            "a range of words",
            "[random]\nsamples = 2\nkappa = { low = \"a\", high = 1 }",
            "random.kappa.low",
        ),
        sweep(
            "an endless range",
            "[random]\nsamples = 2\ngamma = { low = 0.1, high = inf }",
            "random.gamma.high: inf",
        ),
        sweep(
            "a logarithm of nothing",
            "[random]\nsamples = 2\ngamma = { low = 0.0, high = 0.5, scale = \"log\" }",
            "random.gamma.low: 0.0 … above 0",
        ),
        sweep(
            "an unknown scale",
            "[random]\nsamples = 2\ngamma = { low = 0.1, high = 0.5, scale = \"cubic\" }",
            "random.gamma.scale … cubic … linear … log",
        ),
        sweep(
            "an unknown key of a range",
            "[random]\nsamples = 2\ngamma = { low = 0.1, high = 0.5, step = 0.1 }",
            "random.gamma.step is unknown",
        ),
        called("no jobs", "sweep sweep.toml --jobs 0", "--jobs … 0 … 1 to 1024").with("sweep.toml", whole),
        called("no threads in a sweep", "sweep sweep.toml --threads 0", "--threads … 0")
            .with("sweep.toml", whole),
        called("no such run", "sweep sweep.toml --index 2", "--index: 2; there are 2 runs")
            .with("sweep.toml", whole),
        called("a file for results", "sweep sweep.toml --out line.toml", "line.toml")
            .with("sweep.toml", whole),
    ]
}

/// Links from `links.txt`.
fn links(name: &str, text: impl Into<Vec<u8>>, words: &str) -> Broken {
    line(name, "network.kind=edges network.file=links.txt", words).with("links.txt", text).says("links.txt")
}

impl Broken {
    fn set(mut self, setting: &str) -> Self {
        self.arguments.extend(["--set".into(), setting.into()]);
        self
    }

    fn with(mut self, file: &'static str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((file, content.into()));
        self
    }

    fn says(mut self, word: &str) -> Self {
        self.words.push(word.into());
        self
    }
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from:?} must occur once");
    text.replace(from, to)
}

fn broken_inputs() -> Vec<Broken> {
    let mut all = vec![
        // The configuration file.
        called("neither preset nor file", "train nosuch", "nosuch … preset … synthetic … apprenticeship"),
        called("no such file", "train nosuch.toml", "nosuch.toml … cannot be read"),
        called("no such file to resolve", "config nosuch.toml", "nosuch.toml … cannot be read"),
        called("no source at all", "train ", "neither a preset … nor a file"),
        called("a line break in a name", "train no\nsuch", "preset"),
        called("a folder as configuration", "train folder.toml", "folder.toml … cannot be read")
            .with("folder.toml/inside.txt", ""),
        config("an empty file", "", "missing … world"),
        config("only a comment", "# nothing\n", "missing … world"),
        config("not UTF-8", b"iterations = 3 # \xff\xfe\n", "line.toml … UTF-8"),
        config("cut off in a section", "iterations = 3\n[world\n", "line.toml … line 2"),
        config("cut off in a string", "[world]\nkind = \"li", "line.toml … line 2"),
        config("a key twice", "batch = 3\nbatch = 4\n", "line.toml … line 2 … duplicate key"),
        config("an integer beyond 64 bits", "batch = 99999999999999999999\n", "line.toml … line 1"),
        config("JSON in a TOML file", "{\"batch\": 3}\n", "line.toml … line 1"),
        config("nested too deeply", format!("x = {}", "[".repeat(100_000)), "line.toml … recurs"),
        config("dotted too deeply", format!("{}x = 1", "x.".repeat(100_000)), "line.toml … recurs"),
        config("one section for a list", LINE.replace("[[constraint]]", "[constraint]"), "constraint"),
        config("no objective", replaced(LINE, "[objective]\nkind = \"return\"", ""), "objective … missing"),
        // Keys at the top.
        line("unknown key", "kapa=1", "unknown field `kapa` … kappa"),
        line("unknown key with a bar", "", "unknown field `a | b` … kappa").set("a | b=1"),
        line("kappa < 0", "kappa=-1", "kappa … -1 … at least 0"),
        line("kappa is not whole", "kappa=1.0", "kappa … 1.0 … whole number"),
        line("kappa_q < 0", "kappa_q=-2", "kappa_q … -2 … at least 0"),
        line("gamma = 1", "gamma=1", "gamma … 1 … below 1"),
        line("gamma < 0", "gamma=-0.1", "gamma … -0.1 … at least 0"),
        line("gamma is a truth value", "gamma=true", "gamma … true … number"),
        line("gamma is a date", "gamma=1979-05-27", "gamma … 1979-05-27 … number"),
        line("no iterations", "iterations=0", "iterations … 0 … at least 1"),
        line("too many iterations", "iterations=5000000000", "iterations … 5000000000 … 4294967295"),
        line("no steps", "horizon=0", "horizon … 0 … at least 1"),
        line("no trajectories", "batch=0", "batch … 0 … at least 1"),
        line("seed < 0", "seed=-1", "seed … -1 … at least 0"),
        line("seed is not whole", "seed=1.5", "seed … 1.5 … whole number"),
        called(
            "a seed that config.toml cannot hold",
            "train line.toml --seed 18446744073709551615",
            "seed … 18446744073709551615 … 9223372036854775807",
        ),
        line("unknown scaling", "scaling=magic", "scaling … magic … normalised … paper"),
        line("unknown algorithm", "algorithm=magic", "algorithm … magic … primal-dual"),
        called("resolving it", "config line.toml --set kappa=-1", "kappa … -1 … at least 0"),
        // [world] of kind `wireless`.
        wireless("a single row of users", "world.rows=1", "world.rows … 1 … at least 2"),
        wireless("no columns", "world.columns=0", "world.columns … 0 … at least 2"),
        wireless("rows < 0", "world.rows=-2", "world.rows … -2 … at least 0"),
        wireless("a side in one number", "world.m=5", "world … unknown field `m` … rows … columns"),
        wireless("no deadline", "world.deadline=0", "world.deadline … 0 … 1 to 8"),
        wireless("a deadline beyond a byte", "world.deadline=9", "world.deadline … 9 … 1 to 8"),
        wireless("deadline < 0", "world.deadline=-1", "world.deadline … -1 … whole number"),
        wireless("a deadline in words", "world.deadline=soon", "world.deadline … soon … whole number … list"),
        wireless("a deadline that is not whole", "world.deadline=1.5", "world.deadline … 1.5 … whole number"),
        wireless("too few deadlines", "world.deadline=[1,2]", "world.deadline … 2 entries … 4 users"),
        wireless("one deadline too long", "world.deadline=[1,2,9,1]", "world.deadline.2 … 9 … 1 to 8"),
        wireless(
            "a deadline of another type",
            "world.deadline=[1,2.5]",
            "world.deadline … 2.5 … whole number",
        ),
        wireless("arrival > 1", "world.arrival=1.5", "world.arrival … 1.5 … 0 to 1"),
        wireless("arrival is not a number", "world.arrival=nan", "world.arrival … nan"),
        wireless("arrival in words", "world.arrival=often", "world.arrival … often … number … list … low"),
        wireless("too many arrivals", "world.arrival=[0,0,0,0,0]", "world.arrival … 5 entries … 4 users"),
        wireless("success < 0", "world.success=-0.1", "world.success … -0.1 … 0 to 1"),
        wireless("infinite success", "world.success=inf", "world.success … inf … 0 to 1"),
        wireless("success by user", "world.success=[1,1,1,1]", "world.success … 4 entries … 1 access point"),
        wireless("one success > 1", "world.success=[2]", "world.success.0 … 2 … 0 to 1"),
        wireless("low above high", "world.success={low=0.5,high=0.4}", "world.success … 0.5 … above … 0.4"),
        wireless("low < 0", "world.success={low=-1,high=0.4}", "world.success.low … -1 … 0 to 1"),
        wireless("low without high", "world.arrival={low=0.5}", "world.arrival … missing … high"),
        wireless("a range with more", "world.arrival={low=0,high=1,mid=0}", "world.arrival … `mid` … high"),
        wireless("a seed in words", "world.seed=four", "world.seed … four … whole number"),
        wireless(
            "more users than numbers",
            "world.rows=100000 world.columns=100000",
            "world.rows … 10000000000",
        ),
        wireless(
            "more users than memory",
            "world.rows=60000 world.columns=60000 world.deadline=8",
            "world.rows … 3600000000 users … memory",
        ),
        // [world] of kind `epidemic`.
        epidemic("infection > 1", "world.infection=1.5", "world.infection … 1.5 … 0 to 1"),
        epidemic("import < 0", "world.import=-0.1", "world.import … -0.1 … 0 to 1"),
        epidemic("recovery is not a number", "world.recovery=nan", "world.recovery … nan"),
        epidemic("infinite recovery", "world.treated_recovery=inf", "world.treated_recovery … inf … 0 to 1"),
        epidemic("protection > 1", "world.protection=2", "world.protection … 2 … 0 to 1"),
        epidemic("start > 1", "world.start=1.01", "world.start … 1.01 … 0 to 1"),
        epidemic("waning without immunity", "world.waning=0.1", "world.waning … sirs"),
        epidemic("waning > 1", "world.model=sirs world.waning=3", "world.waning … 3 … 0 to 1"),
        epidemic("a cost below 0", "world.treat_cost=-1", "world.treat_cost … -1 … at least 0"),
        epidemic("an infinite cost", "world.protect_cost=inf", "world.protect_cost … inf … finite"),
        epidemic("an unknown disease", "world.model=seir", "world.model … seir … sis … sirs"),
        epidemic("an unknown key of a disease", "world.beta=0.1", "world … unknown field `beta` … infection"),
        epidemic("an unknown channel", "constraint.0.channel=masks", "masks … reward … infected … treatment"),
        epidemic("agents that the file knows not", "world.n=20", "karate-club.txt … agent … 0 to 19"),
        epidemic("a file for a grid", "network.kind=grid", "network.file … edges"),
        contacts("nobody to infect", "", "world.n … missing … network"),
        contacts("an epidemic of no agents", "world.n=0", "world.n … 0 agents"),
        contacts("an epidemic of too many", "world.n=1000000000000", "world.n … memory"),
        contacts("a ring of how many", "network.kind=ring", "world.n … missing … ring"),
        contacts(
            "a grid of another number",
            "world.n=5 network.kind=grid network.rows=2 network.columns=2",
            "network.rows … 4 agents … world has 5",
        ),
        contacts(
            "a grid beyond memory",
            "network.kind=grid network.rows=60000 network.columns=60000",
            "network.rows … 3600000000 … memory",
        ),
        contacts(
            "an odd small world",
            "world.n=9 network.kind=small_world network.neighbours=3 network.rewire=0",
            "network.neighbours … 3 … even … below 9",
        ),
        contacts(
            "a small world of strangers",
            "world.n=9 network.kind=small_world network.neighbours=0 network.rewire=0",
            "network.neighbours … 0 … even",
        ),
        contacts(
            "a small world of everybody",
            "world.n=9 network.kind=small_world network.neighbours=10 network.rewire=0",
            "network.neighbours … 10 … below 9",
        ),
        contacts(
            "a small world half said",
            "world.n=9 network.kind=small_world network.neighbours=4",
            "network.rewire … missing … small_world",
        ),
        contacts(
            "rewire > 1",
            "world.n=9 network.kind=small_world network.neighbours=4 network.rewire=1.1",
            "network.rewire … 1.1 … 0 to 1",
        ),
        contacts(
            "no links for newcomers",
            "world.n=9 network.kind=scale_free network.links=0",
            "network.links … 0 … 1 to below 9",
        ),
        contacts(
            "more links than agents",
            "world.n=9 network.kind=scale_free network.links=9",
            "network.links … 9 … below 9",
        ),
        contacts(
            "links of a small world",
            "world.n=9 network.kind=small_world network.links=2",
            "network.links … scale_free",
        ),
        contacts(
            "links half said",
            "world.n=9 network.kind=scale_free",
            "network.links … missing … scale_free",
        ),
        // [world] and [network].
        line("no agents", "world.n=0", "world.n … 0 … 2 to"),
        line("n < 0", "world.n=-3", "world.n … -3 … at least 0"),
        line("n in words", "world.n=ten", "world.n … ten … whole number"),
        line("unknown world", "world.kind=torus", "world.kind … torus … line … wireless … table"),
        line("unknown key of a world", "world.nn=3", "world … unknown field `nn` … mixing"),
        line("unknown start", "world.start=twos", "world.start … twos … ones … uniform"),
        line("mixing > 1", "world.mixing=1.5", "world.mixing … 1.5 … 0 to 1"),
        line("a world that is a number", "world=3", "world … 3"),
        line("unknown network", "network.kind=mesh", "network.kind … mesh … ring … edges"),
        line("unknown key of a network", "network.kind=ring network.n=4", "network … `n` … radius"),
        line("network without kind", "network.seed=4", "network … missing … kind"),
        line("grid without rows", "network.kind=grid", "network.rows … missing … grid"),
        line(
            "grid of another size",
            "network.kind=grid network.rows=2 network.columns=3",
            "network … 6 … world has 4",
        ),
        line(
            "grid of a far larger size",
            "network.kind=grid network.rows=65535 network.columns=65535",
            "network … 4294836225 … world has 4",
        ),
        line(
            "grid without rows to count",
            "network.kind=grid network.rows=0 network.columns=4",
            "network.rows … 0 … world has 4",
        ),
        line("radius 0", "network.kind=geometric network.radius=0", "network.radius … 0 … above 0"),
        line(
            "link probability > 1",
            "network.kind=erdos_renyi network.probability=1.5",
            "network.probability … 1.5 … 0 to 1",
        ),
        line(
            "link probability < 0",
            "network.kind=erdos_renyi network.probability=-0.5",
            "network.probability … -0.5 … 0 to 1",
        ),
        line("edges without file", "network.kind=edges", "network.file … missing … edges"),
        line(
            "edges from a missing file",
            "network.kind=edges network.file=nosuch.txt",
            "nosuch.txt … cannot be read",
        ),
        line("edges from a folder", "network.kind=edges network.file=folder", "folder … cannot be read")
            .with("folder/inside.txt", ""),
        links("an unknown agent", "0 1\n1 12\n", "line 2 … agent 12 … 0 to 3"),
        links("a negative agent", "0 -1\n", "line 1 … -1 … 0 to 3"),
        links("a link of three", "0 1 2\n", "line 1 … 3 columns … two agent numbers"),
        links("a word in place of an agent", "0 b\n", "line 1 … `b` … 0 to 3"),
        links("an empty edge list", "", "no links … two agent numbers"),
        links("an edge list that is not UTF-8", b"0 1\n\xff\xfe 2\n", "UTF-8"),
        // [objective].
        line("unknown utility", "objective.kind=magic", "objective.kind … magic … linear … return"),
        line("utility that is a number", "objective.kind=3", "objective.kind … 3 … string"),
        line("unknown channel", "objective.channel=gold", "objective.channel … gold … reward"),
        line(
            "channel of an entropy",
            "objective.kind=state_entropy objective.channel=reward",
            "objective.channel … return",
        ),
        line("unknown key of a utility", "objective.colour=3", "objective … `colour` … scale"),
        line("table for a return", "objective.r=[1,2,3,4]", "objective … return … channel"),
        line("linear without r", "objective.kind=linear", "objective.r … missing … 2 states x 2 actions"),
        line("r too short", "objective.kind=linear objective.r=[1,2]", "objective.r … 2 entries … = 4"),
        line(
            "r in uneven rows",
            "objective.kind=linear objective.r=[[1,2],[3]]",
            "objective.r[1] … 1 entries … 2 actions",
        ),
        line("r of words", "objective.kind=linear objective.r=[\"x\",0,0,0]", "objective.r … numbers"),
        line("nan in r", "objective.kind=linear objective.r=[1,2,nan,3]", "objective.r … 2 … nan"),
        line("inf in r", "objective.kind=linear objective.r=[1,2,inf,3]", "objective.r … inf … finite"),
        line(
            "box with its ends swapped",
            "objective.kind=neg_dist_box objective.lo=[2,2,2,2] objective.hi=[1,1,1,1]",
            "objective.lo … 2 … hi = 1",
        ),
        line(
            "ball of negative radius",
            "objective.kind=neg_dist_ball objective.center=[1,1,1,1] objective.radius=-1",
            "objective.radius … -1 … at least 0",
        ),
        line(
            "cubed distance",
            "objective.kind=neg_dist_ball objective.center=[1,1,1,1] objective.radius=1 objective.power=3",
            "objective.power … 3 … 1 or 2",
        ),
        line(
            "halfspace without direction",
            "objective.kind=neg_dist_halfspace objective.a=[0,0,0,0] objective.b=1",
            "objective.a … 0 … must not vanish",
        ),
        line("key of another kind", "objective.kind=l2sq objective.b=1", "objective … `b` … l2sq"),
        // Expert files.
        line(
            "missing expert file",
            "objective.kind=neg_l2sq_expert objective.file=nosuch.json",
            "nosuch.json … cannot be read",
        ),
        expert("too few tables", ", [25, 25, 24, 26]", "", "expert.json … lambda … 3 entries … 4 agents"),
        expert(
            "too many tables",
            "[25, 25, 24, 26]",
            "[25, 25, 24, 26], [25, 25, 25, 25]",
            "expert.json … lambda … 5 entries … 4",
        ),
        expert("table of the wrong size", "24, 26]", "24, 25, 1]", "expert … 5 entries … = 4 … agent 3"),
        expert("negative occupancy", "24, 26]", "51, -1]", "expert … -1 … at least 0 … agent 3"),
        expert("NaN in JSON", "24, 26]", "24, NaN]", "expert.json … cannot be parsed … line 2"),
        expert("null in a table", "24, 26]", "24, null]", "expert.json … lambda[3] … numbers"),
        expert("infinite occupancy", "24, 26]", "24, \"inf\"]", "expert … inf … finite … agent 3"),
        expert("unknown key in the file", "\"lambda\"", "\"lambdas\"", "expert.json … `lambdas` … expert"),
        expert("discount factor of the file", "0.99", "7", "expert.json … gamma … 7 … 0.99"),
        expert("cut off", "24, 26]\n]}", "24", "expert.json … cannot be parsed"),
        line(
            "nan in a TOML file",
            "objective.kind=neg_l2sq_expert objective.file=expert.toml",
            "expert.toml … lambda.0.3 … nan",
        )
        .with("expert.toml", "lambda = [[25, 25, 25, nan]]"),
        line(
            "inf in a TOML file",
            "objective.kind=neg_l2sq_expert objective.file=expert.toml",
            "expert … inf … finite",
        )
        .with("expert.toml", "lambda = [[25, 25, 25, inf], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]"),
        // [[constraint]].
        line(
            "threshold above the maximum",
            "constraint.0.at_least=0.8",
            "constraint.0 … 0.8 … maximum 0.693147 … state_entropy … allow_infeasible",
        ),
        line(
            "threshold above the maximum of a truncated occupancy",
            "constraint.0.at_least=0.74 scaling=paper horizon=125",
            "constraint.0 … 0.74 … maximum 0.735471 … allow_infeasible",
        ),
        line(
            "return above the maximum",
            "constraint.0.kind=return constraint.0.at_least=1000",
            "constraint.0 … 1000 … maximum 99.9999 … return",
        ),
        config(
            "threshold below the minimum",
            replaced(LINE, "at_least = 0.1", "at_most = -0.5"),
            "constraint.0 … at_most = -0.5 … minimum 0 … allow_infeasible",
        ),
        line("both thresholds", "constraint.0.at_most=1", "constraint.0 … at_least … at_most … one"),
        config(
            "no threshold",
            replaced(LINE, "at_least = 0.1", ""),
            "constraint.0 … at_least … at_most … one",
        ),
        line("threshold in words", "constraint.0.at_least=high", "constraint.0.at_least … high … number"),
        line("unknown key of a constraint", "constraint.0.at_lest=1", "constraint.0 … `at_lest`"),
        line("unknown agent", "constraint.0.agents=[0,9]", "constraint.0.agents … 9 … 0 to 3"),
        line("negative agent", "constraint.0.agents=[-1]", "constraint.0.agents … -1 … at least 0"),
        line("an agent twice", "constraint.0.agents=[0,2,2]", "constraint.0.agents … 2"),
        line("a constraint on nobody", "constraint.0.agents=[]", "constraint.0.agents"),
        line("agents that are no list", "constraint.0.agents=3", "constraint.0.agents … 3"),
        line("unknown bounded utility", "constraint.0.kind=magic", "constraint.0.kind … magic … linear"),
        line(
            "unknown bounded channel",
            "constraint.0.kind=return constraint.0.channel=gold",
            "constraint.0.channel … gold … reward",
        ),
        line(
            "allow_infeasible in words",
            "constraint.0.allow_infeasible=yes",
            "constraint.0.allow_infeasible … yes … boolean",
        ),
        line("name that is a number", "constraint.0.name=3", "constraint.0.name … 3 … string"),
        line(
            "factor of another scaling",
            "constraint.0.shadow_scale=2",
            "constraint.0.shadow_scale … authors",
        ),
        line("constraints that are a number", "constraint=3", "constraint … 3"),
        // [policy], [critic], [dual], [actor], [evaluation].
        line("unknown policy", "policy.kind=deep", "policy.kind … deep … softmax … direct"),
        line("a policy with a bar", "", "policy.kind … a | b … softmax … direct").set("policy.kind=a | b"),
        line("unknown key of a policy", "policy.colour=3", "policy … `colour` … init_std"),
        line("box reversed", "policy.box=[1,-1]", "policy.box … [1, -1]"),
        line("box with one end", "policy.box=[1]", "policy.box … length"),
        line("box with three ends", "policy.box=[1,2,3]", "policy.box … length"),
        line("box with nan", "policy.box=[nan,1]", "policy.box … nan"),
        line("box at infinity", "policy.box=[inf,inf]", "policy.box … inf"),
        line("box of a direct policy", "policy.kind=direct policy.box=[-1,1]", "policy.box … softmax"),
        line("negative noise", "policy.init_std=-1", "policy.init_std … -1 … at least 0"),
        line("unknown critic", "critic.kind=oracle", "critic.kind … oracle … td … lstd … montecarlo"),
        line("unknown key of a critic", "critic.step_size=3", "critic … `step_size` … eta_q"),
        line("critic without steps", "critic.steps=0", "critic.steps … 0 … at least 1"),
        line("first step of 2", "critic.h=200", "critic.h … 2 … up to 1"),
        line("negative harmonic steps", "critic.h=-50 critic.k1=-100", "critic.h … -50 … above 0"),
        line("constant step of 2", "critic.step=constant critic.eta_q=2", "critic.eta_q … 2 … up to 1"),
        line("no ridge", "critic.kind=lstd critic.ridge=0", "critic.ridge … 0 … above 0"),
        line("unknown start of a critic", "critic.start=hot", "critic.start … hot … warm … cold"),
        line(
            "counterfactual baseline of sampled returns",
            "critic.kind=montecarlo actor.baseline=counterfactual",
            "actor.baseline … counterfactual … montecarlo … mean",
        ),
        line(
            "direct policy with sampled returns",
            "critic.kind=montecarlo policy.kind=direct",
            "policy.kind … direct … montecarlo … td",
        ),
        line("unknown dual update", "dual.kind=magic", "dual.kind … magic … proximal … pi"),
        line("mu_max < 0", "dual.mu_max=-1", "dual.mu_max … -1 … at least 0"),
        line("mu_max = nan", "dual.mu_max=nan", "dual.mu_max … nan"),
        line("mu_max = -inf", "dual.mu_max=-inf", "dual.mu_max … -inf … at least 0"),
        line("mu_0 above mu_max", "dual.mu_0=60", "dual.mu_0 … 60 … 50"),
        line("centre above mu_max", "dual.centre=60", "dual.centre … 60 … 50"),
        line("negative dual step", "dual.eta_mu=-1", "dual.eta_mu … -1 … at least 0"),
        line("unknown schedule", "dual.schedule={kind=\"cosine\"}", "dual.schedule … cosine … linear"),
        line("schedule without its keys", "dual.schedule={kind=\"linear\"}", "dual.schedule … hold"),
        line(
            "schedule that holds beyond the end",
            "actor.schedule={kind=\"linear\",hold=2.0,end=0.1}",
            "actor.schedule … hold = 2 … 0 to 1",
        ),
        line(
            "schedule that turns around",
            "actor.schedule={kind=\"linear\",hold=0.5,end=-0.1}",
            "actor.schedule … end = -0.1 … at least 0",
        ),
        line(
            "schedule with nan",
            "actor.schedule={kind=\"linear\",hold=nan,end=0.1}",
            "actor.schedule.hold … nan",
        ),
        line(
            "infinite exponent",
            "actor.schedule={kind=\"power\",exponent=inf}",
            "actor.schedule … exponent = inf … finite",
        ),
        line(
            "key of another schedule",
            "actor.schedule={kind=\"power\",exponent=1,hold=3}",
            "actor.schedule … `hold` … exponent",
        ),
        line(
            "key of a schedule that has none",
            "actor.schedule={kind=\"constant\",end=3}",
            "actor.schedule … `end`",
        ),
        line("unknown optimizer", "actor.optimizer=rmsprop", "actor.optimizer … rmsprop … adam"),
        line("unknown baseline", "actor.baseline=zero", "actor.baseline … zero … counterfactual"),
        line("unknown key of an actor", "actor.eta=3", "actor … `eta` … eta_theta"),
        line(
            "agents that are neither all nor summed up",
            "output.agents=some",
            "output.agents … some … auto … all … summary",
        ),
        line("an unknown output", "output.plots=true", "output … plots … unknown … agents"),
        line("evaluation without episodes", "evaluation.episodes=0", "evaluation.episodes … 0 … at least 1"),
        line(
            "negative limit on agent-steps",
            "evaluation.max_agent_steps=-5",
            "evaluation.max_agent_steps … -5 … at least 0",
        ),
        // Linear and network models.
        line(
            "a layer of no units",
            "policy.kind=network policy.hidden=[8,0]",
            "policy.hidden.1 … 0 … 1 to 65536",
        ),
        line(
            "a layer too wide",
            "policy.kind=network policy.hidden=[1000000]",
            "policy.hidden.0 … 1000000 … 65536",
        ),
        line("a width below 0", "policy.kind=network policy.hidden=[-3]", "policy.hidden … -3 … at least 0"),
        line("widths that are no list", "policy.hidden=32", "policy.hidden … 32"),
        line("embedding 0", "policy.kind=network policy.embedding=0", "policy.embedding … 0 … 1 to 65536"),
        line(
            "no embedding of a critic",
            "critic.kind=network critic.embedding=0",
            "critic.embedding … 0 … 1 to",
        ),
        line(
            "an embedding too wide",
            "critic.kind=network critic.embedding=9999999",
            "critic.embedding … 9999999 … 65536",
        ),
        wireless(
            "no units for rows",
            "critic.kind=network critic.row_hidden=0",
            "critic.row_hidden … 0 … 1 to 65536",
        ),
        line(
            "layers beyond memory",
            "policy.kind=network policy.hidden=[65536,65536]",
            "policy.hidden … parameters … memory",
        ),
        line(
            "layers of a critic beyond memory",
            "critic.kind=network critic.hidden=[65536,65536]",
            "critic.hidden … parameters … memory",
        ),
        line(
            "adam without minibatches",
            "critic.kind=network critic.minibatch=0",
            "critic.optimizer … adam … sgd",
        ),
        line(
            "minibatch < 0",
            "critic.kind=network critic.minibatch=-1",
            "critic.minibatch … -1 … at least 0",
        ),
        line("no passes", "critic.kind=network critic.passes=0", "critic.passes … 0 … 1 to"),
        line(
            "endless passes",
            "critic.kind=network critic.passes=4000000000",
            "critic.passes … 4000000000 … memory",
        ),
        line(
            "passes beyond counting",
            "critic.passes=1000000000000",
            "critic.passes … 1000000000000 … 4294967295",
        ),
        line(
            "chains beyond counting",
            "critic.kind=linear critic.steps=100000000 critic.episode=1",
            "critic.episode … 1 … 100000000 … 16777212",
        ),
        line("no gradient left", "critic.kind=network critic.clip=0", "critic.clip … 0 … above 0"),
        line("negative norm", "actor.clip=-1", "actor.clip … -1 … above 0"),
        line("norm of nan", "actor.clip=nan", "actor.clip … nan"),
        line(
            "average that forgets nothing",
            "critic.kind=linear critic.average=1",
            "critic.average … 1 … below 1",
        ),
        line("average < 0", "critic.average=-0.5", "critic.average … -0.5 … at least 0"),
        line("a target that stays", "critic.kind=network critic.polyak=1", "critic.polyak … 1 … below 1"),
        line("polyak < 0", "critic.polyak=-0.1", "critic.polyak … -0.1 … at least 0"),
        line("learning backwards", "critic.learning_rate=-0.1", "critic.learning_rate … -0.1 … at least 0"),
        line("negative gain", "policy.output_gain=-1", "policy.output_gain … -1 … at least 0"),
        line("entropy < 0", "actor.entropy=-0.1", "actor.entropy … -0.1 … at least 0"),
        line("entropy of direct policies", "policy.kind=direct actor.entropy=0.1", "actor.entropy … direct"),
        line("entropy without samples", "algorithm=exact actor.entropy=0.1", "actor.entropy … primal-dual"),
        line("exact and linear", "algorithm=exact policy.kind=linear", "policy.kind … softmax … direct"),
        line("exact and a network", "algorithm=exact policy.kind=network", "policy.kind … softmax … direct"),
        line(
            "an exact critic of a network",
            "critic.kind=exact policy.kind=network",
            "policy.kind … softmax",
        ),
        line(
            "an exact critic and linear",
            "critic.kind=exact policy.kind=linear",
            "policy.kind … softmax … direct",
        ),
        line(
            "unknown features",
            "policy.kind=linear policy.features=triple",
            "policy.features … triple … own … additive … pair",
        ),
        line(
            "unknown features of a critic",
            "critic.kind=linear critic.features=cubic",
            "critic.features … cubic … own … additive … pair",
        ),
        line("unknown solver", "critic.kind=linear critic.solver=qr", "critic.solver … qr … lstd … td"),
        line("unknown samples", "critic.kind=linear critic.on=replay", "critic.on … replay … batch … chain"),
        line("unknown loss", "critic.kind=network critic.loss=l1", "critic.loss … l1 … mse … huber"),
        line("unknown optimizer of a critic", "critic.optimizer=rms", "critic.optimizer … rms … sgd … adam"),
        line("twins in words", "critic.twin=both", "critic.twin … both … boolean"),
        line("box of a network", "policy.kind=network policy.box=[-1,1]", "policy.box … softmax … linear"),
        line(
            "all actions of sampled returns",
            "critic.kind=montecarlo actor.all_actions=true",
            "actor.all_actions … montecarlo",
        ),
        line(
            "a schedule that ends before it begins",
            "actor.entropy_schedule={kind=\"linear\",hold=0.5,end=0.0,until=0.4}",
            "actor.entropy_schedule … until = 0.4 … hold = 0.5",
        ),
        line(
            "a schedule that ends after the end",
            "actor.schedule={kind=\"linear\",hold=0.5,end=0.0,until=1.5}",
            "actor.schedule … until = 1.5 … at most 1",
        ),
        wireless(
            "features beyond memory",
            "world.rows=100 world.columns=100 kappa=3 policy.kind=linear critic.kind=linear critic.features=pair",
            "critic.features … GiB … memory",
        ),
        wireless(
            "averages beyond memory",
            "world.rows=100 world.columns=100 kappa=3 policy.kind=linear critic.kind=linear critic.features=additive \
             critic.average=0.5",
            "critic.features … features … memory",
        ),
        wireless(
            "weights beyond memory",
            "world.rows=100 world.columns=100 kappa=3 policy.kind=linear critic.kind=linear critic.features=pair \
             critic.solver=td",
            "critic.features … weights … memory",
        ),
        wireless(
            "features beyond counting",
            "world.rows=2 world.columns=1400 world.deadline=8 network.kind=star kappa=0 kappa_q=1 critic.kind=linear \
             critic.features=pair",
            "critic.features … agent 0 … 2800 … 4294967295",
        ),
        wireless(
            "tables beyond memory",
            "world.rows=5 world.columns=5 kappa=2",
            "kappa … 15 agents … 16777216",
        ),
        wireless(
            "tables of a critic beyond memory",
            "world.rows=5 world.columns=5 kappa=0 kappa_q=1",
            "kappa_q",
        ),
        wireless("an exact run of what is sampled", "kappa=0 algorithm=exact", "reward"),
        called("a check of what is sampled", "check wireless.toml", "reward")
            .with("wireless.toml", wireless_config()),
        called("a check of networks", "check line.toml --set policy.kind=network", "policy.kind … softmax"),
        pistons(
            "a general utility of mappo",
            "algorithm=mappo-l",
            "constraint … state_entropy … sums of rewards",
        ),
        line("tables of mappo", "algorithm=mappo-l", "policy.kind … mappo-l … network"),
        line("an unknown scope", "mappo.scope=none", "mappo.scope … none … global … local … aggregate"),
        line("an unknown sight", "mappo.actor_sees=all", "mappo.actor_sees … all … local … khop … global"),
        line("an unknown behaviour", "mappo.behaviour=good", "mappo.behaviour … good … faithful … corrected"),
        line("an unknown key of mappo", "mappo.learning_rates=1", "mappo … learning_rates"),
        line("actors that unlearn", "mappo.learning_rate=-1", "mappo.learning_rate … -1 … at least 0"),
        line(
            "critics that unlearn",
            "mappo.critic_learning_rate=-1",
            "mappo.critic_learning_rate … -1 … at least 0",
        ),
        line("a bonus for certainty", "mappo.entropy=-0.1", "mappo.entropy … -0.1 … at least 0"),
        line("multipliers < 0", "mappo.lambda_0=-1", "mappo.lambda_0 … -1 … at least 0"),
        line("multipliers that turn", "mappo.lambda_rate=-1", "mappo.lambda_rate … -1 … at least 0"),
        line("infinite multipliers", "mappo.lambda_rate=inf", "mappo.lambda_rate … inf … finite"),
        line("no epochs", "mappo.epochs=0", "mappo.epochs … 0 … 1 to"),
        line("no minibatches", "mappo.minibatches=0", "mappo.minibatches … 0 … 1 to"),
        line("ratios of nothing", "mappo.clip=0", "mappo.clip … 0 … above 0"),
        line("values that stay", "mappo.value_clip=0", "mappo.value_clip … 0 … above 0"),
        line("no gradients", "mappo.max_gradient=0", "mappo.max_gradient … 0 … above 0"),
        line("a loss of nothing", "mappo.huber=0", "mappo.huber … 0 … above 0"),
        line("advantages over 0", "mappo.advantage_epsilon=0", "mappo.advantage_epsilon … 0 … above 0"),
        line("lambda_gae > 1", "mappo.lambda_gae=1.5", "mappo.lambda_gae … 1.5 … 0 to 1"),
        line("a layer of nothing", "mappo.hidden=[0]", "mappo.hidden.0 … 0 … 1 to 65536"),
        line("rows of nothing", "mappo.row_hidden=0", "mappo.row_hidden … 0 … 1 to 65536"),
        line("an embedding of nothing", "mappo.embedding=0", "mappo.embedding … 0 … 1 to 65536"),
        line("a decay that grows late", "mappo.decay.kind=linear", "mappo.decay"),
        called(
            "an unknown script",
            "eval wireless.toml --policy wave",
            "--policy … wave … uniform, matching",
        )
        .with("wireless.toml", wireless_config()),
        called(
            "a script of another world",
            "eval line.toml --policy matching",
            "--policy … matching … uniform",
        ),
        called(
            "the return of a channel that is none",
            "train wireless.toml --set objective.channel=gold",
            "objective.channel … gold … reward … send",
        )
        .with("wireless.toml", wireless_config()),
        wireless(
            "more packets than steps",
            "constraint.0.kind=return constraint.0.channel=reward constraint.0.at_least=101",
            "constraint.0 … 101 … maximum 99.9999 … return",
        ),
        // --set.
        line("setting without value", "kappa", "--set … kappa … KEY=VALUE"),
        line("setting without key", "=3", "--set … dotted name"),
        line("setting with an empty part", "dual..kind=pi", "--set … dual..kind … dotted name"),
        line("setting with an empty value", "kappa=", "kappa … \"\" … whole number"),
        line("setting inside a value", "iterations.x=1", "--set … iterations.x … not a section"),
        line("entry beyond a list", "constraint.5.at_least=1", "--set … constraint.5.at_least … list has 1"),
        line("entry without number", "constraint.x.at_least=1", "--set … no entry x … list has 1"),
        line("list without entry", "constraint.at_least=1", "--set … no entry at_least … list has 1"),
        line("entry that is no section", "constraint.0=3", "constraint[0] … 3"),
        line("two settings in one", "kappa=1\nbatch=3", "kappa"),
        line("a line break in a value", "world.kind=a\nb", "world.kind … line … table"),
        line("a line break in a key", "wor\nld.n=3", "unknown field"),
        // Models.
        model("no agents in a model", "\"n\": 2", "\"n\": 0", "n: 0 … at least 1"),
        model("more agents than lists", "\"n\": 2", "\"n\": 3", "state_sizes … 2 entries … n = 3"),
        model("an astronomical n", "\"n\": 2", "\"n\": 1000000000000000", "2 entries … n = 1000000000000000"),
        model("gamma = 1 in a model", "0.9,", "1.0,", "gamma … 1 … below 1"),
        model("300 states", "[2, 3]", "[300, 3]", "state_sizes[0] … 300 … 1 to 256"),
        model("no actions", "[2, 1]", "[2, 0]", "action_sizes[1] … 0 … 1 to 256"),
        model("edge to an unknown agent", "[[0, 1]]", "[[0, 9]]", "edges … agent 9 … 0 to 1"),
        model("edge to a negative agent", "[[0, 1]]", "[[0, -1]]", "edges[0][1] … -1 … at least 0"),
        model("edge of three", "[[0, 1]]", "[[0, 1, 1]]", "edges[0] … length 3"),
        model("unknown parent", "[[0], [1]]", "[[0], [9]]", "parents[1] … agent 9 … 0 to 1"),
        model("parents out of order", "[[0], [1]]", "[[1, 0], [1]]", "parents[0] … [1, 0] … ascending"),
        model("law too short", "0.4, 0.6]", "0.4]", "transition[1] … 8 numbers … = 9"),
        model(
            "laws for one agent only",
            ",\n        [0.2, 0.3, 0.5, 1, 0, 0, 0, 0.4, 0.6]",
            "",
            "transition … 1 entries … n = 2",
        ),
        model("row that sums to 1.1", "[0.5, 0.5,", "[0.5, 0.6,", "transition[0], row 0 … 1.1 … to 1"),
        model("negative probability", "0.4, 0.6]", "-0.4, 1.4]", "transition[1], row 2 … -0.4 … probability"),
        model("NaN in a law", "0.25", "NaN", "cannot be parsed … line 9"),
        model("null in a law", "0.25", "null", "transition[0][2] … null … number"),
        model("string in a law", "0.25", "\"nan\"", "transition[0][2] … nan … number"),
        model("number beyond f64", "0.25", "1e999", "cannot be parsed … line 9"),
        model("start law that sums to 0.9", "[0.55,", "[0.45,", "rho.local[0] … 0.9 … to 1"),
        model("start law of another size", "0.7, 0.2]", "0.9]", "rho.local[1] … 2 numbers … 3 states"),
        model("start law missing", ", [0.1, 0.7, 0.2]", "", "rho.local … 1 laws … n = 2"),
        model(
            "joint start law of the wrong size",
            START_LAW,
            "{\"kind\": \"joint\", \"p\": [0.5, 0.5]}",
            "rho.p … 2 … 6",
        ),
        model(
            "joint start law that sums to 0.9",
            START_LAW,
            "{\"kind\": \"joint\", \"p\": [0.9, 0, 0, 0, 0, 0]}",
            "rho.p … 0.9 … to 1",
        ),
        model(
            "joint start law with a negative entry",
            START_LAW,
            "{\"kind\": \"joint\", \"p\": [1, 0.25, -0.25, 0, 0, 0]}",
            "rho.p … -0.25 … probability",
        ),
        model("unknown start law", "\"product\"", "\"gauss\"", "rho.kind … gauss … product … joint"),
        model("unknown key of a model", "\"n\": 2", "\"n\": 2, \"colour\": 3", "`colour` … state_sizes"),
        model("model without start law", &format!("\"rho\": {START_LAW},"), "", "missing … rho"),
        model("one objective for two agents", ", {\"kind\": \"state_entropy\"}", "", "f … 1 entries … n = 2"),
        model("unknown objective in a model", "\"state_entropy\"", "\"gold\"", "f[1].kind … gold … linear"),
        model("reward of another size", "[0, 0, 1, 1]", "[0, 0, 1]", "f[0].r … 3 entries … = 4"),
        model("constraints for one agent only", "\"f\"", "\"g\": [[]], \"f\"", "g … 1 entries … n = 2"),
        model("a list as model", MODEL, "[1, 2]", ""),
        model("an empty model", MODEL, "", "cannot be parsed"),
        model("a cut off model", &MODEL[200..], "", "cannot be parsed"),
        model("a model nested too deeply", MODEL, &"[".repeat(100_000), "cannot be parsed … recursion"),
        called("a model without objective", "train table.toml", "objective … missing")
            .with("model.json", replaced(MODEL, &format!(",\n    {OBJECTIVES}"), "")),
        called(
            "return of a model without rewards",
            "train table.toml --set objective.kind=return",
            "objective.channel … reward … unknown",
        ),
        called("a model that is not UTF-8", "train table.toml", "model.json … UTF-8")
            .with("model.json", b"{\"n\": \xff"),
        called(
            "a missing model",
            "train table.toml --set world.file=nosuch.json",
            "nosuch.json … cannot be read",
        ),
        called("a folder as model", "train table.toml --set world.file=folder", "folder … cannot be read")
            .with("folder/inside.txt", ""),
        called("a number as model", "train table.toml --set world.file=3", "world.file … 3"),
        called(
            "a model without file",
            "train line.toml --set world={kind=\"table\"}",
            "world … file … missing",
        ),
        toml_model("nan in a TOML law", "0.25", "nan", "transition.0.0 … nan"),
        toml_model("inf in a TOML law", "0.25", "inf", "transition … inf"),
        toml_model("infinite gamma in TOML", "0.9", "inf", "gamma … inf"),
        toml_model("infinite scale in TOML", "3.0", "inf", "scale … inf"),
        toml_model("infinite reward in TOML", "2.0", "inf", "f[0].r … inf … finite"),
        // Sizes that no machine has.
        line("endless episodes", "horizon=1000000000000", "horizon … 1000000000000"),
        line("episodes beyond counting", "horizon=9223372036854775807", "horizon … 9223372036854775807"),
        line("endless critic", "critic.steps=1000000000000", "critic.steps … 1000000000000"),
        line(
            "endless critic by least squares",
            "critic.kind=lstd critic.steps=1000000000000",
            "critic.steps … 1000000000000",
        ),
        line(
            "endless sampled returns",
            "critic.kind=montecarlo critic.steps=1000000000000",
            "critic.steps … 1000000000000",
        ),
        line(
            "sampled returns beyond counting",
            "critic.kind=montecarlo critic.steps=9223372036854775807",
            "critic.steps … 9223372036854775807",
        ),
        line("batch beyond its limit", "batch=1000000000000", "batch … 1000000000000 … 16777214"),
        line("batch that fills the memory", "batch=16777214 horizon=100000", "batch … 16777214"),
        line("n beyond its limit", "world.n=1000000000000", "world.n … 1000000000000"),
        line("n that fills the memory", "world.n=4294967295", "world.n … 4294967295"),
        line(
            "a radius that sees everybody",
            "world.n=40 network.kind=complete",
            "kappa … 40 agents … 1099511627776 … 16777216",
        ),
        line("tables that are too many", "world.n=100000 kappa=5", "kappa"),
        line("links that are too many", "world.n=1000000 network.kind=complete", "network … 1000000"),
        // Results, threads, bench.
        called("a file as results", "train line.toml --out notes.txt", "--out … notes.txt … file")
            .with("notes.txt", ""),
        called("an occupied folder", "train line.toml --out full", "--out … full … not empty")
            .with("full/notes.txt", ""),
        called("the folder of the input", "train line.toml --out .", "--out … . … not empty"),
        called("results inside a file", "train line.toml --out notes.txt/a", "--out … notes.txt/a")
            .with("notes.txt", ""),
        called(
            "a place that takes no folders",
            "train line.toml --out /proc/phalanx-results",
            "--out … /proc/phalanx-results",
        ),
        called("a file where runs go", "train line.toml", "runs").with("runs", ""),
        called(
            "an occupied folder and a bound out of reach",
            "train line.toml --out full",
            "--out … full … not empty",
        )
        .set("constraint.0.at_least=0.8")
        .set("constraint.0.allow_infeasible=true")
        .with("full/notes.txt", ""),
        called(
            "bad input with a folder of its own",
            "train line.toml --out results --set kappa=-1 --json",
            "kappa … -1 … at least 0",
        ),
        // The exact setting.
        called("exact of nothing", "exact nosuch.json", "nosuch.json … cannot be read"),
        called("exact of TOML that is none", "exact line.toml", "line.toml … unknown field"),
        called("exact without a model", "exact case.json", "case.json … missing field `model`")
            .with("case.json", r#"{"input": {"kappa": 1}}"#),
        called("exact of a list", "exact case.json", "case.json … object").with("case.json", "[1, 2]"),
        called("exact of half a file", "exact case.json", "case.json … parsed … EOF")
            .with("case.json", &whole_case().as_bytes()[..200]),
        called("exact on no threads", "exact case.json --threads 0", "--threads … 0 … 1 to")
            .with("case.json", whole_case()),
        case("an unknown key", r#""kappa_q""#, r#""kapa_q""#, "kapa_q … unknown field … kappa_q"),
        case("another format", r#""format": 1"#, r#""format": 2"#, "format … 2 … format 1"),
        case("no discount", r#""gamma": 0.9,"#, "", "model.gamma … missing"),
        case("gamma of a case is 1", r#""gamma": 0.9"#, r#""gamma": 1.0"#, "model.gamma … 1 … below 1"),
        case(
            "a law that does not sum to 1",
            "0.25, 0.75",
            "0.25, 0.85",
            "model.transition[0], row 1 … agent 0 … 1.1",
        ),
        case(
            "a negative probability",
            "0.25, 0.75",
            "1.75, -0.75",
            "model.transition[0], row 1 … probability",
        ),
        case("a law too few", "0.25, 0.75, ", "", "model.transition[0] … 6 numbers … 8"),
        case("an unknown parent", "[[0], [1]]", "[[0], [2]]", "model.parents[1] … agent 2 … 0 to 1"),
        case("an unknown neighbour", "[[0, 1]]", "[[0, 7]]", "model.edges … agent 7"),
        case("objectives missing", &format!(",\n    {OBJECTIVES}"), "", "model.f … missing"),
        case("an objective of another size", "[0, 0, 1, 1]", "[0, 0, 1]", "model.f[0] … r"),
        case(
            "an unknown constraint",
            r#"{"kind": "state_entropy", "offset""#,
            r#"{"kind": "entropy", "offset""#,
            "model.g[0][0] … entropy … state_entropy",
        ),
        case("kappa of a case < 0", r#""kappa": 0"#, r#""kappa": -1"#, "kappa … -1 … at least 0"),
        case("parameters of too few agents", ", [0, 0, 0]]", "]", "theta … 1 lists … 2 agents"),
        case(
            "parameters too few",
            "[0.5, -0.5, 0.25, 0]",
            "[0.5, -0.5, 0.25]",
            "theta[0] … 3 numbers … agent 0 has 4",
        ),
        case("a parameter that is none", "0.25, 0]", "\"x\", 0]", "theta[0][2] … number"),
        case("a parameter too large to be one", "0.25, 0]", "1e400, 0]", "case.json … number out of range"),
        case("a parameter outside the box", "0.25, 0]", "0.25, 3]", "theta[0][3] … 3 … [-2, 2]"),
        case("an empty box", "[-2, 2]", "[2, -2]", "box … [2, -2]"),
        case("multipliers too many", "[[1.5], []]", "[[1.5, 0], []]", "mu[0] … 2 numbers … agent 0 has 1"),
        case("a negative multiplier", "[[1.5], []]", "[[-1.5], []]", "mu[0][0] … -1.5 … 0 to mu_bar = 5"),
        case("a multiplier above its bound", "[[1.5], []]", "[[5.5], []]", "mu[0][0] … 5.5 … 5"),
        case("mu_bar < 0", r#""mu_bar": 5"#, r#""mu_bar": -5"#, "mu_bar … -5 … at least 0"),
        case("no sample", r#""B": 200"#, r#""B": 0"#, "estimator.B … 0 … above 0"),
        case("delta0 is no probability", "0.001", "1.5", "estimator.delta0 … 1.5 … probability"),
        case("eta_mu of a case < 0", "8.0", "-8.0", "algorithm.eta_mu … -8 … at least 0"),
        case("iterations of a case < 0", r#""T": 3"#, r#""T": -3"#, "algorithm.T … -3 … at least 0"),
        called(
            "a case with too many joint states",
            "exact case.json",
            "case.json … 131072 joint states … 65536",
        )
        .with("case.json", many_agents(17)),
        called(
            "a case with too many pairs",
            "exact case.json",
            "case.json … 8192 joint states … pairs … 16777216",
        )
        .with("case.json", many_agents(13)),
        called("a program with too many pairs", "exact case.json --optimum", "case.json … pairs … 65536")
            .with("case.json", many_agents(10)),
        called("the optimum of a convex utility", "exact case.json --optimum", "case.json … f[1] … convex")
            .with("case.json", whole_case().replace(r#"{"kind": "state_entropy"}]"#, r#"{"kind": "l2sq"}]"#)),
        called("constraints that no policy keeps", "exact case.json --optimum", "case.json … no policy")
            .with("case.json", whole_case().replace(r#""offset": -0.1"#, r#""offset": -9.0"#)),
        line(
            "an exact run of too many agents",
            "algorithm=exact world.n=17",
            "world … 131072 joint states … 65536",
        ),
        line(
            "an exact critic of too many agents",
            "critic.kind=exact world.n=40",
            "world … 1099511627776 joint states … 65536",
        ),
        line(
            "an exact run of a crowd",
            "algorithm=exact world.n=1000",
            "world … about 10^301 joint states … 65536",
        ),
        line(
            "the authors' scaling without samples",
            "algorithm=exact scaling=authors",
            "scaling … authors … normalised",
        ),
        line("unknown truncation", "critic.truncation=mean", "critic.truncation … mean … averaged"),
        line(
            "a critic that truncates nothing",
            "critic.kind=exact critic.truncation=none",
            "critic.truncation … none … averaged",
        ),
        line(
            "td of too large a neighbourhood",
            "algorithm=exact critic.truncation=td world.n=8 kappa_q=3",
            "kappa_q … agent 2 … 4096 pairs … 1100",
        ),
        line("unknown step rule", "actor.rule=optimal", "actor.rule … optimal … theorem"),
        line(
            "a step rule for samples",
            "actor.rule=theorem actor.optimizer=sgd",
            "actor.rule … algorithm = exact",
        ),
        line(
            "a step rule for adam",
            "actor.rule=local algorithm=exact",
            "actor.rule … actor.optimizer = sgd",
        ),
        line(
            "a step rule for simplices",
            "actor.rule=local algorithm=exact actor.optimizer=sgd policy.kind=direct",
            "actor.rule … policy.kind = softmax",
        ),
        line(
            "a step rule without a bound",
            "actor.rule=theorem algorithm=exact actor.optimizer=sgd dual.mu_max=inf",
            "actor.rule … dual.mu_max = finite",
        ),
        line(
            "theorem steps without constants",
            "actor.rule=theorem algorithm=exact actor.optimizer=sgd world.start=zeros",
            "actor.rule … bounded shadow rewards",
        ),
        line("total schedule without an exponent", "dual.schedule.kind=total", "dual.schedule … exponent"),
        called("no threads", "train line.toml --threads 0", "--threads … 0 … 1 to"),
        called("a million threads", "train line.toml --threads 1000000", "--threads … 1000000"),
        called("bench of an unknown world", "bench torus", "torus … line … wireless"),
        called("bench of three users", "bench wireless --n 3", "--n … 3 … 4"),
        called("bench of too many users", "bench wireless --n 9000000000000", "--n … users"),
        called("bench without agents", "bench line --n 0", "--n … 0 … 2 to"),
        called("bench of too many agents", "bench line --n 4294967295", "--n … 4294967295"),
        called("bench without threads", "bench line --threads 0", "--threads … 0 … 1 to"),
        called("bench of one piston", "bench pistonball --n 1", "--n … 1"),
        pistons("one piston", "world.n=1", "world.n … 1 … 2 to"),
        pistons("too many pistons", "world.n=50000", "world.n … 50000 … 2 to 10000"),
        pistons("another game", "world.game=chess", "world.game … chess … paper … pettingzoo"),
        pistons("a number as a game", "world.game=3", "world.game"),
        pistons("a key of another world", "world.mixing=0.1", "world … mixing … game"),
        pistons("lambda > 1", "critic.lambda=1.5", "critic.lambda … 1.5 … 0 to 1"),
        pistons("lambda < 0", "critic.lambda=-0.5", "critic.lambda … -0.5 … 0 to 1"),
        pistons("empty minibatches", "critic.minibatch=0", "critic.minibatch … 0 … returns … at least 1"),
        pistons("kappa_g above kappa_q", "kappa_q=1 kappa_g=2", "kappa_g … 2 … kappa_q = 1"),
        pistons("kappa_g < 0", "kappa_g=-1", "kappa_g … -1"),
        pistons(
            "one network for objective and constraints, of which some count",
            "critic.kind=network critic.merged=true kappa_g=0",
            "kappa_g … critic.merged",
        ),
        line(
            "kappa_g of the exact algorithm",
            "algorithm=exact kappa_q=1 kappa_g=0",
            "kappa_g … primal-dual",
        ),
        pistons("nothing new in occupancies", "occupancy_average=1", "occupancy_average … 1 … below 1"),
        pistons("occupancies that turn", "occupancy_average=-0.1", "occupancy_average … -0.1 … at least 0"),
        pistons(
            "normalised alternatives",
            "critic.kind=network actor.baseline=counterfactual",
            "actor.normalise … baseline `mean` or `none`",
        ),
        pistons(
            "returns of alternatives",
            "actor.baseline=counterfactual actor.normalise=false",
            "actor.baseline … returns",
        ),
        pistons(
            "returns of all actions",
            "actor.all_actions=true actor.normalise=false",
            "actor.all_actions … returns",
        ),
        pistons(
            "returns of direct policies",
            "policy.kind=direct kappa=0 actor.normalise=false actor.entropy=0",
            "policy.kind … returns",
        ),
        pistons(
            "an exact critic of pistons",
            "critic.kind=exact policy.kind=softmax kappa=0 actor.normalise=false",
            "world … exact computations need",
        ),
        pistons(
            "exact pistons",
            "algorithm=exact policy.kind=softmax kappa=0 actor.entropy=0 occupancy_average=0 actor.normalise=false \
             actor.discount=true",
            "world … exact computations need",
        ),
        called(
            "a check of pistons",
            "check pistonball --set policy.kind=softmax --set kappa=0",
            "world … simulated whole",
        ),
        called("a check of networks on pistons", "check pistonball", "world … simulated whole"),
        pistons(
            "running occupancies of an exact run",
            "algorithm=exact policy.kind=softmax kappa=0 actor.entropy=0",
            "occupancy_average … primal-dual",
        ),
        called(
            "an unknown script",
            "eval pistonball --policy tsunami",
            "--policy … tsunami … still, random, wave",
        ),
    ];
    all.extend(not_finite());
    all.extend(broken_sweeps());
    all
}

/// A case of `n` independent agents with two states and two actions.
fn many_agents(n: usize) -> String {
    let list = |entry: &str| vec![entry; n].join(", ");
    let parents: Vec<String> = (0..n).map(|i| format!("[{i}]")).collect();
    format!(
        r#"{{"model": {{"n": {n}, "gamma": 0.9, "state_sizes": [{}], "action_sizes": [{}], "edges": [], "parents": [{}],
        "transition": [{}], "rho": {{"kind": "product", "local": [{}]}}, "f": [{}]}}}}"#,
        list("2"),
        list("2"),
        parents.join(", "),
        list("[0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1]"),
        list("[0.5, 0.5]"),
        list(r#"{"kind": "linear", "r": [0, 0, 1, 1]}"#)
    )
}

/// nan and ±inf in every place that takes a number, with the settings that make it count.
fn not_finite() -> Vec<Broken> {
    const PLACES: [(&str, &str); 46] = [
        ("iterations", ""),
        ("seed", ""),
        ("gamma", ""),
        ("horizon", ""),
        ("batch", ""),
        ("kappa", ""),
        ("kappa_q", ""),
        ("world.n", ""),
        ("world.mixing", ""),
        ("network.rows", "network.kind=grid network.columns=2"),
        ("network.columns", "network.kind=grid network.rows=2"),
        ("network.radius", "network.kind=geometric"),
        ("network.probability", "network.kind=erdos_renyi"),
        ("network.seed", "network.kind=ring"),
        ("objective.scale", ""),
        ("objective.offset", ""),
        ("objective.scale", "objective.kind=l2sq"),
        ("objective.radius", "objective.kind=neg_dist_ball objective.center=[1,1,1,1]"),
        ("objective.b", "objective.kind=neg_dist_halfspace objective.a=[1,1,1,1]"),
        ("constraint.0.at_least", ""),
        ("constraint.0.scale", ""),
        ("constraint.0.offset", ""),
        ("constraint.0.shadow_scale", "scaling=authors"),
        ("policy.init_std", ""),
        ("critic.steps", ""),
        ("critic.h", ""),
        ("critic.k1", ""),
        ("critic.eta_q", "critic.step=constant"),
        ("critic.ridge", "critic.kind=lstd"),
        ("critic.average", ""),
        ("critic.polyak", ""),
        ("critic.learning_rate", ""),
        ("critic.minibatch", ""),
        ("critic.episode", ""),
        ("critic.embedding", ""),
        ("policy.embedding", ""),
        ("policy.row_hidden", ""),
        ("policy.output_gain", ""),
        ("actor.entropy", ""),
        ("dual.eta_mu", ""),
        ("dual.eta_integral", ""),
        ("dual.mu_0", ""),
        ("dual.centre", ""),
        ("actor.eta_theta", ""),
        ("evaluation.episodes", ""),
        ("evaluation.max_agent_steps", ""),
    ];
    let mut all = Vec::new();
    for (key, others) in PLACES {
        for value in ["nan", "inf", "-inf"] {
            let settings = format!("{key}={value} {others}");
            all.push(line(settings.trim_end(), &settings, &format!("{key} … {value}")));
        }
    }
    all
}

/// Command lines that do not parse: the usage that comes with the message may take several lines.
const BROKEN_COMMAND_LINES: [&[&str]; 22] = [
    &[],
    &["frobnicate"],
    &["train"],
    &["train", "line.toml", "--frobnicate"],
    &["train", "line.toml", "table.toml"],
    &["train", "line.toml", "--seed", "-1"],
    &["train", "line.toml", "--seed=-1"],
    &["train", "line.toml", "--seed", "1.5"],
    &["train", "line.toml", "--seed", "18446744073709551616"],
    &["train", "line.toml", "--threads", "-1"],
    &["train", "line.toml", "--threads", "many"],
    &["train", "line.toml", "--set"],
    &["train", "line.toml", "--out"],
    &["train", "line.toml", "--out", ""],
    &["train", "line.toml", "--json=3"],
    &["config"],
    &["bench"],
    &["exact"],
    &["exact", "model.json", "--json"],
    &["sweep"],
    &["sweep", "line.toml", "--index", "-1"],
    &["bench", "line", "--n", "-5"],
];

/// A new folder with the three files that work, and with `files`.
fn folder(files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let working = [("line.toml", LINE.into()), ("table.toml", TABLE.into()), ("model.json", MODEL.into())];
    for (name, content) in working.iter().chain(files) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

/// The program in `folder`, with 4 GB of address space where that can be limited: what asks for too much must
/// be refused, and must not fill the machine that runs the tests if it is not.
fn phalanx(folder: &Path) -> Command {
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 4194304 2>/dev/null; exec \"$0\" \"$@\"", BINARY]);
        shell
    } else {
        Command::new(BINARY)
    };
    command.current_dir(folder).env("RAYON_NUM_THREADS", "2").env_remove("RUST_BACKTRACE");
    command.timeout(Duration::from_secs(60));
    command
}

/// Everything below `folder`: contents of files, nothing for folders.
fn snapshot(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let content = path.is_file().then(|| std::fs::read(&path).unwrap());
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), content);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// What the program does wrong with a broken input, if anything.
fn misbehaviour(broken: &Broken) -> Option<String> {
    let folder = folder(&broken.files);
    let before = snapshot(folder.path());
    let output = phalanx(folder.path()).args(&broken.arguments).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let mut wrong = Vec::new();
    if output.status.code() != Some(2) {
        wrong.push(format!("{}, not exit status: 2", output.status));
    }
    if !message.starts_with("error: ") || !message.ends_with('\n') || message.lines().count() != 1 {
        wrong.push("the message is not one line `error: …`".to_string());
    }
    wrong.extend(
        broken
            .words
            .iter()
            .filter(|word| !message.contains(*word))
            .map(|word| format!("{word:?} is not said")),
    );
    if message.matches("os error").count() > 1 {
        wrong.push("the reason is said twice".to_string());
    }
    if !output.stdout.is_empty() {
        wrong.push(format!("standard output has {} bytes", output.stdout.len()));
    }
    if snapshot(folder.path()) != before {
        wrong.push("something was written".to_string());
    }
    let excerpt: String = message.chars().take(300).collect();
    let arguments: Vec<String> =
        broken.arguments.iter().map(|argument| argument.chars().take(80).collect()).collect();
    (!wrong.is_empty()).then(|| {
        format!("{}: phalanx {}\n    {}\n    {excerpt:?}", broken.name, arguments.join(" "), wrong.join("; "))
    })
}

#[test]
fn bad_input_is_refused_in_one_line_with_nothing_written() {
    let all = broken_inputs();
    let wrong: Vec<String> = all.iter().filter_map(misbehaviour).collect();
    assert!(wrong.is_empty(), "{} of {} inputs:\n\n{}\n", wrong.len(), all.len(), wrong.join("\n\n"));
}

#[test]
fn bad_command_lines_are_refused_with_nothing_written() {
    let folder = folder(&[]);
    let before = snapshot(folder.path());
    for arguments in BROKEN_COMMAND_LINES {
        let output = phalanx(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(snapshot(folder.path()), before, "{arguments:?}");
    }
}

/// JSON has no way to name such a folder, and `--json` must name the run.
#[cfg(unix)]
#[test]
fn a_results_folder_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let folder = folder(&[]);
    let before = snapshot(folder.path());
    let out = std::ffi::OsStr::from_bytes(b"results\xff");
    let output = phalanx(folder.path()).args(["train", "line.toml", "--out"]).arg(out).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("error: ") && message.contains("--out"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(snapshot(folder.path()), before);
}

/// Each entry above differs in one thing from what works.
#[test]
fn the_files_that_entries_break_work() {
    let files = [
        ("model.toml", MODEL_TOML.into()),
        ("expert.json", EXPERT.into()),
        ("links.txt", b"0 1\n1 2\n2 3\n".to_vec()),
        ("wireless.toml", wireless_config().into()),
    ];
    let folder = folder(&files);
    let expert = ["--set", "objective.kind=neg_l2sq_expert", "--set", "objective.file=expert.json"];
    let links = ["--set", "network.kind=edges", "--set", "network.file=links.txt"];
    let models = |settings: &'static str| {
        settings.split(' ').flat_map(|setting| ["--set", setting]).collect::<Vec<_>>()
    };
    let linear =
        models("policy.kind=linear critic.kind=linear policy.box=[-1,1] critic.episode=1000000000000");
    let network =
        models("policy.kind=network policy.hidden=[] critic.kind=network critic.minibatch=1000000000000");
    let online = models(
        "policy.kind=network critic.kind=network critic.optimizer=sgd critic.minibatch=0 critic.clip=inf",
    );
    for (config, settings) in [
        ("line.toml", &[][..]),
        ("line.toml", &expert),
        ("line.toml", &links),
        ("table.toml", &[]),
        ("table.toml", &["--set", "world.file=model.toml"]),
        ("wireless.toml", &[]),
        ("line.toml", &linear),
        ("line.toml", &network),
        ("wireless.toml", &linear),
        ("wireless.toml", &online),
    ] {
        let output = phalanx(folder.path()).args(["train", config]).args(settings).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{config} {settings:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{config} {settings:?}: {output:?}");
    }
}

/// A policy of another kind or shape is refused by `--init` and by `eval`, with both kinds or shapes.
#[test]
fn policies_of_other_models_are_refused() {
    let folder = folder(&[]);
    let run = |arguments: &str| phalanx(folder.path()).args(arguments.split(' ')).output().unwrap();
    let models = [
        ("linear", "policy.kind=linear"),
        ("additive", "policy.kind=linear --set policy.features=additive"),
        ("farther", "policy.kind=linear --set kappa=2"),
        ("network", "policy.kind=network --set policy.hidden=[8]"),
        ("wider", "policy.kind=network --set policy.hidden=[9]"),
        ("deeper", "policy.kind=network --set policy.hidden=[8,8]"),
        ("more", "policy.kind=network --set policy.hidden=[8] --set world.n=5"),
        ("table", "policy.kind=softmax"),
    ];
    for (name, model) in models {
        let output = run(&format!("train line.toml --set {model} --out {name}"));
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
    for (from, to, words) in [
        ("linear", "table", "`linear-pair` … `softmax`"),
        ("linear", "network", "`linear-pair` … `network`"),
        ("linear", "additive", "`linear-pair` … `linear-additive`"),
        ("network", "linear", "`network` … `linear-pair`"),
        ("linear", "farther", "theta.0 … [6, 2] … [10, 2]"),
        ("farther", "linear", "theta.0 … [10, 2] … [6, 2]"),
        ("network", "wider", "theta.0.hidden.0.weight … [8, 8] … [8, 9]"),
        ("network", "deeper", "20 tensors … 28"),
        ("deeper", "network", "28 tensors … 20"),
        ("more", "network", "25 tensors … 20"),
        ("network", "more", "20 tensors … 25"),
    ] {
        let model = models.iter().find(|(name, _)| *name == to).unwrap().1;
        let before = snapshot(folder.path());
        let output = run(&format!("train line.toml --set {model} --init {from} --out new"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{from} as {to}: {message}");
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        let missing: Vec<&str> = words.split(" … ").filter(|word| !message.contains(word)).collect();
        assert!(missing.is_empty(), "{from} as {to}: {missing:?} are not in {message}");
        assert!(snapshot(folder.path()) == before, "{from} as {to}");
        // A run whose policy is another run's.
        let kept = std::fs::read(folder.path().join(to).join("policy.safetensors")).unwrap();
        let copy =
            |bytes: &[u8]| std::fs::write(folder.path().join(to).join("policy.safetensors"), bytes).unwrap();
        copy(&std::fs::read(folder.path().join(from).join("policy.safetensors")).unwrap());
        let output = run(&format!("eval {to}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{from} as {to}: {message}");
        let missing: Vec<&str> = words.split(" … ").filter(|word| !message.contains(word)).collect();
        assert!(missing.is_empty() && message.lines().count() == 1, "{from} as {to}: {message}");
        copy(&kept);
    }
}

/// The one line that the program prints with `--json`.
fn json_line(stdout: &[u8]) -> serde_json::Value {
    let text = std::str::from_utf8(stdout).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "not one line: {text:?}");
    serde_json::from_str(text).unwrap()
}

#[test]
fn bounds_out_of_reach_can_be_allowed_and_say_the_least_violation() {
    // Four binary agents. With full mass the entropy is at most ln 2; 125 steps have the mass m < 1 only, of
    // which half in each state gives −m ln(m/2).
    let mass = 1.0 - 0.99f64.powi(125);
    for (scaling, maximum) in [("normalised", 2f64.ln()), ("paper", -mass * (mass / 2.0).ln())] {
        let least = 4.0 * (0.8 - maximum);
        let folder = folder(&[]);
        let output = phalanx(folder.path())
            .args(["train", "line.toml", "--json", "--set", "gamma=0.99", "--set", "horizon=125"])
            .args(["--set", "constraint.0.at_least=0.8", "--set", "constraint.0.allow_infeasible=true"])
            .args(["--set", &format!("scaling={scaling}")])
            .output()
            .unwrap();
        let warning = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{warning}");
        assert!(warning.starts_with("warning: ") && warning.lines().count() == 1, "{warning}");
        let mut numbers = warning.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        assert!(
            numbers.any(|number| (number - least).abs() < 1e-5),
            "{scaling}: {least} is not in {warning}"
        );
        for word in ["constraint.0", "state_entropy", "0.8"] {
            assert!(warning.contains(word), "{word} is not in {warning}");
        }
        let reached = json_line(&output.stdout)["violation_total"].as_f64().unwrap();
        assert!(reached >= least - 1e-9, "{scaling}: {reached} < {least}");
    }
}

#[test]
fn every_preset_trains_and_prints_one_line_of_json() {
    const NUMBERS: [&str; 11] = [
        "seed",
        "iterations",
        "return",
        "objective",
        "violation_total",
        "violation_max",
        "violation_mean",
        "wall_s",
        "agent_steps",
        "agent_steps_per_s",
        "comm_bytes",
    ];
    let folder = folder(&[]);
    let list = phalanx(folder.path()).arg("presets").output().unwrap().stdout;
    let list = String::from_utf8(list).unwrap();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"synthetic"), "{list}");
    for name in names {
        // One of them has ten thousand agents: four hundred episodes of theirs would take a while.
        let short = ["--set", "iterations=2", "--set", "evaluation.episodes=20"];
        let output = phalanx(folder.path()).args(["train", name, "--json"]).args(short).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        assert!(output.stderr.is_empty(), "{name}: {output:?}");
        let outcome = json_line(&output.stdout);
        for field in NUMBERS {
            assert!(outcome[field].is_number(), "{name}: {field} is {}", outcome[field]);
        }
        assert_eq!(outcome["iterations"], 2, "{name}");
        let run = folder.path().join(outcome["run"].as_str().unwrap());
        assert!(run.join("policy.safetensors").is_file(), "{name}: {}", run.display());
    }
}
