//! A run that is stopped and resumed goes on as if it had never stopped, for every kind of every part.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phalanx::distributed::SingleProcess;
use phalanx::run::{Config, Ending, Provenance, Registry, ResumeOutcome, Run, RunFolder, Session};

const FILES: [&str; 3] = ["metrics.csv", "agents.csv", "policy.safetensors"];

fn config(settings: &[(&str, &str)]) -> Config {
    let small =
        [("world.n", "5"), ("horizon", "20"), ("batch", "3"), ("critic.steps", "40"), ("iterations", "12")];
    let small = small.into_iter().chain([("evaluation.episodes", "5")]).chain(settings.iter().copied());
    Config::preset("synthetic").unwrap().with_all(small).unwrap()
}

fn begin(config: &Config, path: &Path) -> Run {
    Run::begin(Session::new(config).unwrap(), path, Provenance::default()).unwrap()
}

/// Trains until `stop_after` iterations are done.
fn run_until(run: &mut Run, stop_after: usize) -> phalanx::Result<Ending> {
    let stop = Arc::new(AtomicBool::new(false));
    run.train(&stop, |summary| stop.store(summary.iteration + 1 >= stop_after, Ordering::Relaxed))
}

fn try_resume(path: &Path) -> phalanx::Result<ResumeOutcome> {
    Run::resume(path, &Registry::default(), Arc::new(SingleProcess))
}

fn resume(path: &Path) -> (Box<Run>, Vec<String>) {
    match try_resume(path).unwrap() {
        ResumeOutcome::Ready { run, notes } => (run, notes),
        ResumeOutcome::Finished => panic!("the run is not finished"),
    }
}

fn read(path: &Path) -> [Vec<u8>; 3] {
    FILES.map(|name| std::fs::read(path.join(name)).unwrap())
}

#[test]
fn every_combination_of_kinds_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut combinations = 0;
    for dual in ["proximal", "descent", "pi"] {
        for critic in ["td", "lstd", "montecarlo", "exact", "the exact algorithm"] {
            for policy in ["softmax", "direct"] {
                if critic == "montecarlo" && policy == "direct" {
                    continue;
                }
                for (optimizer, start) in [("adam", "warm"), ("sgd", "cold")] {
                    let name = format!("{dual}-{critic}-{policy}-{optimizer}");
                    let kind = match critic {
                        "the exact algorithm" => ("algorithm", "exact"),
                        critic => ("critic.kind", critic),
                    };
                    let config = config(&[
                        ("dual.kind", dual),
                        kind,
                        ("policy.kind", policy),
                        ("actor.optimizer", optimizer),
                        ("critic.start", start),
                    ]);
                    assert_resumes(&config, folder.path(), &name);
                    combinations += 1;
                }
            }
        }
    }
    assert_eq!(combinations, 3 * 9 * 2);
}

/// A run in one piece, and the same in three.
fn assert_resumes(config: &Config, folder: &Path, name: &str) {
    let whole = folder.join(format!("{name}-whole"));
    let mut run = begin(config, &whole);
    assert!(matches!(run_until(&mut run, usize::MAX), Ok(Ending::Finished(Some(_)))));
    let parts = folder.join(format!("{name}-parts"));
    let mut run = begin(config, &parts);
    assert!(matches!(run_until(&mut run, 5), Ok(Ending::Stopped { iteration: 5 })));
    drop(run);
    let (mut run, notes) = resume(&parts);
    assert_eq!(notes, Vec::<String>::new());
    assert!(matches!(run_until(&mut run, 9), Ok(Ending::Stopped { iteration: 9 })));
    drop(run);
    let (mut run, _) = resume(&parts);
    assert!(matches!(run_until(&mut run, usize::MAX), Ok(Ending::Finished(Some(_)))));
    assert!(read(&parts) == read(&whole), "{name} differs");
}

/// Events of whole episodes, sums over groups and a shield, each with what it remembers.
#[test]
fn safety_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let ever =
        r#"[{ kind = "ever", states = [1], at_most = 0.4 }, { kind = "state_entropy", at_least = 0.3 }]"#;
    let group = r#"[{ kind = "state_entropy", group = [1, 2, 3], at_least = 1.5 }]"#;
    for (name, constraint) in [("ever", ever), ("group", group)] {
        for shield in ["none", "revert"] {
            let config = config(&[("constraint", constraint), ("safety.shield", shield)]);
            assert_resumes(&config, folder.path(), &format!("{name}-{shield}"));
        }
    }
}

/// What is usual is counted from the beginning.
#[test]
fn faulty_links_resume_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for policy in ["softmax", "linear", "network"] {
        let config = config(&[("links.loss", "0.5"), ("links.max_age", "2"), ("policy.kind", policy)]);
        assert_resumes(&config, folder.path(), policy);
    }
}

/// Linear and network models with every option that has a memory, on both worlds.
#[test]
fn models_resume_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let critics = [
        "kind=linear solver=lstd average=0.9 on=batch features=own",
        "kind=linear solver=lstd average=0 on=chain episode=15 features=additive",
        "kind=linear solver=td on=chain features=pair world_features=false",
        "kind=network optimizer=adam minibatch=16 passes=2 polyak=0.9 twin=true clip=1.0 on=chain episode=15",
        "kind=network optimizer=adam minibatch=16 merged=true polyak=0 on=batch loss=huber",
        "kind=network optimizer=sgd minibatch=0 polyak=0.9 on=chain",
        "kind=network optimizer=sgd minibatch=0 polyak=0 twin=true merged=true on=batch",
        "kind=td",
    ];
    let policies = [
        "kind=linear features=additive",
        "kind=linear features=pair",
        "kind=network hidden=[8,4]",
        "kind=shared hidden=[8,4] kinds=[0,1] reads=states",
    ];
    let actors = [
        "actor.entropy=0.05 actor.entropy_schedule={kind=\"linear\",hold=0.2,end=0.0,until=0.8} actor.all_actions=true",
        "actor.optimizer=sgd actor.clip=0.5 actor.baseline=mean",
    ];
    let duals = ["proximal", "descent", "pi", "pi"];
    let mut combinations = 0;
    for (preset, small) in [
        ("synthetic", "world.n=5 horizon=20 batch=3 critic.steps=40"),
        ("wireless", "world.rows=2 world.columns=3 batch=3 critic.steps=40"),
    ] {
        for (c, critic) in critics.iter().enumerate() {
            for (p, policy) in policies.iter().enumerate() {
                // Tables over the neighbours of a user are too large.
                let radius = if *critic == "kind=td" { "kappa_q=0" } else { "kappa_q=1" };
                let mut settings =
                    format!("{small} {radius} iterations=12 evaluation.episodes=5 dual.kind={}", duals[p]);
                critic.split(' ').for_each(|setting| settings += &format!(" critic.{setting}"));
                policy.split(' ').for_each(|setting| settings += &format!(" policy.{setting}"));
                settings += &format!(" {}", actors[(c + p) % 2]);
                if critic.starts_with("kind=network") {
                    settings += " critic.hidden=[8]";
                }
                let settings = settings.split(' ').map(|setting| setting.split_once('=').unwrap());
                let config = Config::preset(preset).unwrap().with_all(settings).unwrap();
                assert_resumes(&config, folder.path(), &format!("{preset}-{c}-{p}"));
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 2 * 8 * 4);
}

/// Episodes that end early, sampled returns with their learnt baseline, running occupancies, and the actor's
/// options.
#[test]
fn mappo_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let small =
        "algorithm=mappo-l policy.kind=network policy.hidden=[8] mappo.hidden=[8] mappo.lambda_rate=0.1";
    let line = r#"constraint=[{kind="linear",r=[0,1,0,1],at_most=50}]"#;
    let pistons = r#"constraint=[{kind="return",channel="height",at_most=2}]"#;
    let users = r#"constraint=[{kind="return",channel="send",at_most=3},{kind="return",at_least=1}]"#;
    for (k, settings) in [
        format!("synthetic world.n=5 horizon=20 batch=3 {line} {small}"),
        format!("synthetic world.n=5 horizon=20 batch=3 {line} {small} mappo.scope=local mappo.actor_sees=local mappo.minibatches=3"),
        format!("wireless world.rows=2 world.columns=3 batch=3 {users} {small} mappo.scope=aggregate"),
        format!("wireless world.rows=2 world.columns=3 batch=3 {users} {small} mappo.behaviour=faithful mappo.minibatches=2"),
        format!("pistonball world.n=3 horizon=25 batch=2 {pistons} {small} mappo.actor_sees=global"),
    ]
    .iter()
    .enumerate()
    {
        let (preset, settings) = settings.split_once(' ').unwrap();
        let settings = settings.split(' ').map(|setting| setting.split_once('=').unwrap());
        let settings = settings.chain([("iterations", "12"), ("evaluation.episodes", "5")]);
        let config = Config::preset(preset).unwrap().with_all(settings).unwrap();
        assert_resumes(&config, folder.path(), &format!("mappo-{preset}-{k}"));
    }
}

#[test]
fn joint_worlds_and_sampled_returns_resume_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let pistons =
        "pistonball world.n=3 horizon=25 batch=2 policy.hidden=[8] critic.hidden=[8] critic.steps=40";
    let returns =
        "critic.kind=returns critic.hidden=[8] critic.minibatch=16 critic.passes=2 actor.baseline=mean";
    let line = format!("synthetic world.n=5 horizon=20 batch=3 {returns}");
    let users =
        format!("wireless world.rows=2 world.columns=3 batch=3 kappa_q=1 actor.all_actions=false {returns}");
    for (k, settings) in [
        format!("{pistons} occupancy_average=0.8 kappa_g=0"),
        format!("{pistons} policy.kind=shared kappa=0"),
        "junctions-grid4x4 world.town.grid=[1,2] horizon=20 constraint.0.budget=1 batch=2 policy.hidden=[8] policy.row_hidden=8 critic.hidden=[8]".into(),
        "junctions-rules world.town.grid=[2,2] horizon=20 batch=2 policy.hidden=[8] policy.row_hidden=8 critic.hidden=[8]".into(),
        format!("{pistons} critic.kind=network critic.on=chain critic.minibatch=16 kappa=1 actor.normalise=false"),
        format!("{pistons} critic.kind=network critic.on=batch critic.minibatch=0 critic.optimizer=sgd kappa_g=0 actor.baseline=mean"),
        format!("{pistons} critic.kind=td critic.start=warm kappa=0 policy.kind=softmax actor.normalise=false"),
        format!("{pistons} critic.kind=linear critic.features=own critic.average=0.9 critic.on=chain kappa=1 policy.kind=linear actor.baseline=mean"),
        format!("{pistons} critic.kind=montecarlo world.game=pettingzoo kappa=0 policy.kind=softmax scaling=authors"),
        format!("{line} occupancy_average=0.8 actor.normalise=true actor.discount=false kappa_g=0 critic.lambda=0.7"),
        format!("{line} critic.optimizer=sgd critic.loss=huber critic.clip=1.0 scaling=paper constraint.0.at_least=0.2"),
        format!("{users} policy.kind=shared critic.sharing=kind policy.kinds=[0,1]"),
        format!("{line} policy.kind=shared critic.sharing=kind critic.optimizer=sgd"),
        format!("{users} occupancy_average=0.5 actor.normalise=true kappa_g=0 policy.kind=network policy.hidden=[8]"),
    ]
    .iter()
    .enumerate()
    {
        let (preset, settings) = settings.split_once(' ').unwrap();
        let settings = settings.split(' ').map(|setting| setting.split_once('=').unwrap());
        let settings = settings.chain([("iterations", "12"), ("evaluation.episodes", "5")]);
        let config = Config::preset(preset).unwrap().with_all(settings).unwrap();
        assert_resumes(&config, folder.path(), &format!("{preset}-{k}"));
    }
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let mut run = begin(&config(&[]), &whole);
    run_until(&mut run, usize::MAX).unwrap();
    let damage: [&dyn Fn(&Path); 4] = [
        &|path| std::fs::write(path.with_extension("safetensors"), b"nonsense").unwrap(),
        &|path| std::fs::remove_file(path.with_extension("safetensors")).unwrap(),
        &|path| {
            let bytes = std::fs::read(path.with_extension("safetensors")).unwrap();
            std::fs::write(path.with_extension("safetensors"), &bytes[..bytes.len() / 2]).unwrap();
        },
        &|path| std::fs::write(path, b"{\"iteration\": 9").unwrap(),
    ];
    for (k, damage) in damage.iter().enumerate() {
        let path = folder.path().join(format!("damaged{k}"));
        let mut run = begin(&config(&[]), &path);
        run_until(&mut run, 5).unwrap();
        run_until(&mut run, 9).unwrap();
        drop(run);
        damage(&path.join("checkpoints/000000009.json"));
        let (mut run, notes) = resume(&path);
        assert!(notes.len() == 1 && notes[0].contains("checkpoint 9"), "{notes:?}");
        assert_eq!(run.session().algorithm().iteration(), 5);
        run_until(&mut run, usize::MAX).unwrap();
        assert!(read(&path) == read(&whole), "damage {k}");
    }
}

/// Useless checkpoints must not stand in the way of new ones.
#[test]
fn after_a_start_from_zero_new_checkpoints_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = begin(&config(&[]), &path);
    run_until(&mut run, 8).unwrap();
    run_until(&mut run, 10).unwrap();
    drop(run);
    for iteration in [8, 10] {
        std::fs::write(path.join(format!("checkpoints/{iteration:09}.safetensors")), b"nonsense").unwrap();
    }
    let (mut run, notes) = resume(&path);
    assert!(notes.iter().any(|note| note.contains("iteration 0")), "{notes:?}");
    run_until(&mut run, 3).unwrap();
    drop(run);
    let (run, notes) = resume(&path);
    assert_eq!((run.session().algorithm().iteration(), notes), (3, vec![]));
}

#[test]
fn logs_that_results_do_not_need_may_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = begin(&config(&[]), &path);
    run_until(&mut run, 5).unwrap();
    drop(run);
    std::fs::remove_dir_all(path.join("tb")).unwrap();
    std::fs::remove_file(path.join("meta.json")).unwrap();
    let (run, notes) = resume(&path);
    assert_eq!(run.session().algorithm().iteration(), 5);
    assert!(notes.len() == 1 && notes[0].contains("begins anew"), "{notes:?}");
}

#[test]
fn a_run_without_a_checkpoint_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole"), folder.path().join("killed"));
    let mut run = begin(&config(&[]), &whole);
    run_until(&mut run, usize::MAX).unwrap();
    // As a kill leaves it: rows beyond any checkpoint.
    let mut session = Session::new(&config(&[])).unwrap();
    let mut files = RunFolder::create(&path, &session, Provenance::default()).unwrap();
    let summary = session.advance().unwrap().unwrap();
    files.record(&summary, &session).unwrap();
    files.flush().unwrap();
    drop(files);
    let (mut run, notes) = resume(&path);
    assert!(notes[0].contains("iteration 0"), "{notes:?}");
    run_until(&mut run, usize::MAX).unwrap();
    assert!(read(&path) == read(&whole));
    assert!(matches!(try_resume(&path).unwrap(), ResumeOutcome::Finished));
}

#[test]
fn a_warm_start_begins_at_the_other_runs_policy_also_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = folder.path().join("teacher");
    let mut run = begin(&config(&[]), &teacher);
    run_until(&mut run, usize::MAX).unwrap();
    let learnt = run.session().policy().theta().clone();
    let mut session = Session::new(&config(&[("seed", "9")])).unwrap();
    session.warm_start(&teacher.join("policy.safetensors")).unwrap();
    assert_eq!(session.algorithm().policy().theta(), &learnt);
    let path = folder.path().join("pupil");
    drop(RunFolder::create(&path, &session, Provenance::default()).unwrap());
    let (run, _) = resume(&path);
    assert_eq!(run.session().policy().theta(), &learnt);
}

#[test]
fn what_cannot_be_resumed_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| match try_resume(path) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{} was resumed", path.display()),
    };
    assert!(message(&folder.path().join("nowhere")).contains("is not a run"));
    assert!(message(folder.path()).contains("config.toml"));
    let path = folder.path().join("run");
    let mut run = begin(&config(&[]), &path);
    run_until(&mut run, 5).unwrap();
    assert!(message(&path).contains("in use"), "two processes at once");
    drop(run);
    let text = std::fs::read_to_string(path.join("config.toml")).unwrap();
    std::fs::write(path.join("config.toml"), text.replace("batch = 3", "batch = 4")).unwrap();
    assert!(message(&path).contains("was changed"));
    std::fs::write(path.join("config.toml"), "kappa = \"one\"").unwrap();
    assert!(message(&path).contains("kappa"));
    std::fs::write(path.join("meta.json"), "{").unwrap();
    assert!(message(&path).contains("meta.json"));
}

/// The policy is there before the closing evaluation, which can be stopped; what was done is not lost.
#[test]
fn a_stop_in_the_closing_evaluation_leaves_policy_and_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = (folder.path().join("run"), folder.path().join("whole"));
    run_until(&mut begin(&config(&[]), &whole), usize::MAX).unwrap();
    let mut run = begin(&config(&[]), &path);
    // Asked for in the last iteration, so that the evaluation finds it.
    assert!(matches!(run_until(&mut run, 12), Ok(Ending::Stopped { iteration: 12 })));
    drop(run);
    assert!(path.join("policy.safetensors").exists() && !path.join("outcome.json").exists());
    assert!(std::fs::read_to_string(path.join("meta.json")).unwrap().contains("\"stopped\""));
    let (mut run, notes) = resume(&path);
    assert_eq!((run.session().algorithm().iteration(), notes), (12, vec![]));
    run_until(&mut run, usize::MAX).unwrap();
    assert!(read(&path) == read(&whole));
}

/// A disk that takes no more files: here, a folder where a file should be.
#[test]
fn what_cannot_be_written_is_said_with_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = begin(&config(&[("checkpoint.seconds", "inf")]), &path);
    std::fs::create_dir(path.join("policy.safetensors.tmp")).unwrap();
    let message = |run: &mut Run| run_until(run, usize::MAX).err().unwrap().to_string();
    assert!(message(&mut run).ends_with("; there is no checkpoint yet"));
    drop(run);
    let (mut run, _) = resume(&path);
    run_until(&mut run, 5).unwrap();
    let said = message(&mut run);
    assert!(
        said.contains("policy.safetensors: ") && said.ends_with("checkpoint is of iteration 5"),
        "{said}"
    );
    drop(run);
    std::fs::remove_dir(path.join("policy.safetensors.tmp")).unwrap();
    let (mut run, _) = resume(&path);
    assert!(matches!(run_until(&mut run, usize::MAX), Ok(Ending::Finished(Some(_)))));
}
