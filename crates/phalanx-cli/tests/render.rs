//! `phalanx render`: the pictures that it writes are read again.

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

fn phalanx(folder: &Path, arguments: &str) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
    command.current_dir(folder).args(arguments.split_whitespace()).assert()
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Width, height and pixels.
type Image = (usize, usize, Vec<[u8; 3]>);

fn read_png(path: &Path) -> Image {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, info.height as usize, bytes.as_chunks::<3>().0.to_vec())
}

/// The frames as they are seen, with how long, in hundredths of a second.
fn read_gif(path: &Path) -> Vec<(Image, u16)> {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(std::fs::File::open(path).unwrap()).unwrap();
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let mut seen = vec![[0; 3]; width * height];
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        let places = (0..frame.height).flat_map(|y| (0..frame.width).map(move |x| (x, y)));
        for ((x, y), pixel) in places.zip(frame.buffer.as_chunks::<4>().0) {
            if pixel[3] > 0 {
                let at = usize::from(frame.top + y) * width + usize::from(frame.left + x);
                seen[at].copy_from_slice(&pixel[..3]);
            }
        }
        frames.push(((width, height, seen.clone()), frame.delay));
    }
    frames
}

/// State 1 and state 0.
const ON: [u8; 3] = [0x00, 0x72, 0xB2];
const OFF: [u8; 3] = [0xFF, 0xFF, 0xFF];

/// Where the agents of a line of ten are in a frame, found by their discs: in a picture in which all are in
/// state 1, runs of ON in the row that has most of it.
fn centres(all_on: &Image) -> Vec<(usize, usize)> {
    let (width, height, pixels) = all_on;
    let row = |y: usize| &pixels[y * width..(y + 1) * width];
    let count = |y: &usize| row(*y).iter().filter(|&&pixel| pixel == ON).count();
    let most = (0..*height).map(|y| count(&y)).max().unwrap();
    let rows: Vec<usize> = (0..*height).filter(|y| count(y) == most).collect();
    let y = rows[rows.len() / 2];
    let mut centres = Vec::new();
    let mut x = 0;
    for run in row(y).chunk_by(|a, b| a == b) {
        if run[0] == ON && run.len() > 10 {
            centres.push((x + run.len() / 2, y));
        }
        x += run.len();
    }
    centres
}

#[test]
fn the_line_as_an_animation_and_as_pngs() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    // Everybody starts in state 1, or in state 0, which the first step shows.
    for (start, name) in [("ones", "ones.gif"), ("zeros", "zeros.gif"), ("uniform", "mixed.gif")] {
        let common = format!("render synthetic --policy uniform --set world.start={start} --steps 6 --fps 4");
        let said = stdout(&phalanx(folder, &format!("{common} --out {name}")).success());
        assert_eq!(said, format!("{name}: 6 steps\n"));
        let said = stdout(&phalanx(folder, &format!("{common} --out {start}/")).success());
        assert_eq!(said, format!("{start}/step-….png: 6 steps\n"));
    }
    let ones = read_gif(&folder.join("ones.gif"));
    assert_eq!(ones.iter().map(|(_, delay)| *delay).collect::<Vec<_>>(), [25, 25, 25, 25, 25, 200]);
    let centres = centres(&ones[0].0);
    assert_eq!(centres.len(), 10);
    let states = |(width, _, pixels): &Image| -> Vec<u8> {
        let state = |&(x, y): &(usize, usize)| match pixels[y * width + x] {
            ON => 1,
            OFF => 0,
            other => panic!("{other:?}"),
        };
        centres.iter().map(state).collect()
    };
    assert_eq!(states(&read_gif(&folder.join("zeros.gif"))[0].0), [0; 10]);
    for name in ["ones", "zeros", "uniform"] {
        let gif = if name == "uniform" { "mixed".to_string() } else { name.to_string() };
        let animation = read_gif(&folder.join(gif + ".gif"));
        let frames: Vec<Image> =
            (1..=6).map(|k| read_png(&folder.join(format!("{name}/step-{k:04}.png")))).collect();
        for (k, ((image, _), frame)) in animation.iter().zip(&frames).enumerate() {
            assert!(image.0 <= 900 && (image.0, image.1) == (frame.0, frame.1));
            // The palette is exact for what is flat, and near for the edges.
            assert_eq!(states(image), states(frame), "{name}, step {k}");
            let error = |(a, b): (&[u8; 3], &[u8; 3])| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(image.2.iter().zip(&frame.2).filter_map(error).max() <= Some(12));
            if k > 0 {
                // Agent 0 takes over the state of agent 1; this line has no other noise there.
                assert_eq!(states(frame)[0], states(&frames[k - 1])[1], "{name}, step {k}");
            }
        }
    }
    // A start that is a coin for every agent has both states in it, and another seed other ones.
    let first = states(&read_png(&folder.join("uniform/step-0001.png")));
    assert!(first.contains(&0) && first.contains(&1));
    phalanx(folder, "render synthetic --policy uniform --seed 2 --steps 1 --out seed2/").success();
    phalanx(folder, "render synthetic --policy uniform --episode 1 --steps 1 --out other/").success();
    assert_ne!(states(&read_png(&folder.join("seed2/step-0001.png"))), first);
    assert_ne!(states(&read_png(&folder.join("other/step-0001.png"))), first);
}

#[test]
fn a_run_gets_its_animation_among_its_plots() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    phalanx(folder, "train synthetic --set iterations=1 --set evaluation.episodes=4 --out run").success();
    let said = stdout(&phalanx(folder, "render run --steps 3").success());
    assert_eq!(said, "run/plots/episode.gif: 3 steps\n");
    assert_eq!(read_gif(&folder.join("run/plots/episode.gif")).len(), 3);
    // The same episode every time, to the byte.
    phalanx(folder, "render run --steps 3 --out again.gif").success();
    let read = |path: &str| std::fs::read(folder.join(path)).unwrap();
    assert_eq!(read("run/plots/episode.gif"), read("again.gif"));
    let said = stdout(&phalanx(folder, "render run --out sheet.png").success());
    assert_eq!(said, "sheet.png: 12 of 125 steps\n");
    let (width, height, pixels) = read_png(&folder.join("sheet.png"));
    assert!(width <= 1800 && height > 500 && pixels.contains(&ON));
    let said = stdout(&phalanx(folder, "render run --only 5,1 --out steps/").success());
    assert_eq!(said, "steps/step-….png: 2 of 125 steps\n");
    let said = stdout(&phalanx(folder, "render run --only 2 --out steps").success());
    assert_eq!(said, "steps/step-….png (beside 2 that were there): 1 of 125 steps\n");
}

#[test]
fn long_episodes_and_large_networks_are_cut_and_it_is_said() {
    let folder = TempDir::new().unwrap();
    let set = "--policy uniform --set horizon=300 --set world.n=1000";
    let said = stdout(&phalanx(folder.path(), &format!("render synthetic {set} --out a.png")).success());
    assert_eq!(said, "a.png: 12 of 250 steps (an episode in training has 300; --steps draws more)\n");
    phalanx(folder.path(), &format!("render synthetic {set} --only 1 --out all/")).success();
    phalanx(
        folder.path(),
        &format!("render synthetic {set} --set world.n=401 --set world.start=ones --only 1 --out cut/"),
    )
    .success();
    // 400 agents of 1000 or of 401 take the same room.
    let size = |name: &str| {
        let (width, height, _) = read_png(&folder.path().join(name).join("step-0001.png"));
        (width, height)
    };
    assert_eq!(size("all"), size("cut"));
    assert!(size("all").0 <= 900);
}

#[test]
fn bad_options_are_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    for (arguments, wanted) in [
        ("synthetic", "--policy: is missing"),
        ("synthetic --policy uniform --out a.mp4", "allowed are FILE.gif"),
        ("synthetic --policy uniform --out frames", "allowed are FILE.gif"),
        ("synthetic --policy uniform --fps 0", "--fps: 0; allowed are 0.1 to 50"),
        ("synthetic --policy uniform --steps 0", "--steps: 0; allowed are 1 to 1000"),
        ("synthetic --policy uniform --steps 1001", "--steps: 1001"),
        ("synthetic --policy uniform --steps 5 --only 6", "--only: step 6; the episode has steps 1 to 5"),
        ("synthetic --policy uniform --episode 16777216", "--episode: 16777216; allowed are 0 to 16777215"),
    ] {
        let assert = phalanx(folder.path(), &format!("render {arguments}")).code(2);
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{arguments}: {stderr}");
        assert!(stderr.contains(wanted), "{arguments}: {stderr}");
    }
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A world that has no picture of its own is drawn by states and actions on its graph.
#[test]
fn a_table_is_drawn_by_states() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("model.json"),
        r#"{"n": 2, "gamma": 0.9, "state_sizes": [2, 3], "action_sizes": [1, 1], "edges": [[0, 1]], "parents": [[0], [1]],
            "transition": [[0.5, 0.5, 0.5, 0.5], [0.2, 0.2, 0.6, 1, 0, 0, 0, 1, 0]],
            "rho": {"kind": "product", "local": [[0.5, 0.5], [1, 0, 0]]}, "f": [{"kind": "state_entropy"}, {"kind": "state_entropy"}]}"#,
    )
    .unwrap();
    std::fs::write(folder.path().join("table.toml"), "[world]\nkind = \"table\"\nfile = \"model.json\"\n")
        .unwrap();
    phalanx(folder.path(), "render table.toml --policy uniform --steps 4 --out states.png").success();
    let (width, height, _) = read_png(&folder.path().join("states.png"));
    assert!(width > 100 && height > 100);
}

/// The ball's colour, inside its edge, and that of pistons under it.
const BALL: [u8; 3] = [0xF6, 0xDD, 0xA6];
const UNDER: [u8; 3] = ON;

/// Mean x of the pixels of a colour above the small print and the legend, if there are enough to tell.
fn mean_x((width, height, pixels): &Image, colour: [u8; 3]) -> Option<f64> {
    let upper = width * (2 * height / 3);
    let places: Vec<usize> = (0..upper).filter(|&at| pixels[at] == colour).map(|at| at % width).collect();
    (places.len() > 100).then(|| places.iter().sum::<usize>() as f64 / places.len() as f64)
}

#[test]
fn a_wave_of_pistons_carries_the_ball_to_the_left() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    for n in [10, 20] {
        let arguments = format!("render pistonball --policy wave --set world.n={n} --out wave.gif");
        let said = stdout(&phalanx(folder, &arguments).success());
        let frames = read_gif(&folder.join("wave.gif"));
        assert_eq!(said, format!("wave.gif: {} steps (the episode ended there)\n", frames.len()));
        assert!((5..100).contains(&frames.len()));
        let places: Vec<f64> = frames.iter().map(|(image, _)| mean_x(image, BALL).unwrap()).collect();
        let width = frames[0].0.0 as f64;
        assert!(width <= 900.0 && places[0] > 0.7 * width, "{places:?}");
        assert!(places[places.len() - 1] < 0.3 * width, "{places:?}");
        for ((image, _), ball) in frames.iter().zip(places) {
            // Two or three pistons: at most half of one more on either side.
            let under = mean_x(image, UNDER).unwrap();
            assert!((under - ball).abs() < 0.6 * width / f64::from(n), "{under} {ball}");
        }
    }
    let said = stdout(
        &phalanx(folder, "render pistonball --policy still --set world.n=2 --steps 1 --out two/").success(),
    );
    assert!(said.starts_with("two/step-….png: 1 step"), "{said}");
    assert!(mean_x(&read_png(&folder.join("two/step-0001.png")), BALL).is_some());
}

#[test]
fn a_run_on_pistons_shows_its_margins() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let train =
        "train pistonball --set iterations=1 --set batch=2 --set horizon=20 --set evaluation.episodes=4";
    phalanx(folder, &format!("{train} --out run")).success();
    let said = stdout(&phalanx(folder, "render run --steps 3").success());
    assert_eq!(said, "run/plots/episode.gif: 3 steps\n");
    assert_eq!(read_gif(&folder.join("run/plots/episode.gif")).len(), 3);
    phalanx(folder, "render run --steps 3 --out sheet.png").success();
    assert!(read_png(&folder.join("sheet.png")).0 <= 1800);
    // Green where the entropy is as large as it has to be, else vermilion.
    let margins = |at_least: &str| {
        let set = format!("--set constraint.0.at_least={at_least} --only 1 --out {at_least}/");
        phalanx(folder, &format!("render pistonball --policy random {set}")).success();
        let image = read_png(&folder.join(at_least).join("step-0001.png"));
        let count = |colour| image.2.iter().filter(|&&pixel| pixel == colour).count();
        (count([0x00, 0x9E, 0x73]), count([0xD5, 0x5E, 0x00]))
    };
    // The legend has a little of both.
    let ((kept, none), (few, broken)) = (margins("0.5"), margins("2.8"));
    assert!(kept > 10 * none && broken > 10 * few, "{kept} {none} {few} {broken}");
}

/// Colours of people, and of signs on them: white on the infected, dark on others.
const SUSCEPTIBLE: [u8; 3] = OFF;
const INFECTED: [u8; 3] = [0xCC, 0x79, 0xA7];
const RECOVERED: [u8; 3] = [0x89, 0xCB, 0xF0];
const DARK: [u8; 3] = [0x22, 0x22, 0x22];

/// Centres of the people of a grid, row by row, in a picture in which all are infected: the middles of areas
/// of that colour that are larger than the legend's.
fn people((width, height, pixels): &Image) -> Vec<usize> {
    let mut is_seen = vec![false; pixels.len()];
    let mut middles = Vec::new();
    for start in 0..pixels.len() {
        let mut area = Vec::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if pixels[at] != INFECTED || std::mem::replace(&mut is_seen[at], true) {
                continue;
            }
            area.push((at % width, at / width));
            open.extend((at >= *width).then(|| at - width));
            open.extend((at / width + 1 < *height).then(|| at + width));
            open.extend([at.saturating_sub(1), (at + 1).min(pixels.len() - 1)]);
        }
        if area.len() > 300 {
            let mean = |sum: usize| (sum + area.len() / 2) / area.len();
            let (x, y) = area.iter().fold((0, 0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
            middles.push((mean(y), mean(x)));
        }
    }
    middles.sort_unstable();
    middles.iter().map(|(y, x)| y * width + x).collect()
}

#[test]
fn a_disease_spreads_from_contact_to_contact() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    // Whoever has an infected contact is infected, and stays so.
    let sure = "--set world.n=36 --set world.infection=1 --set world.import=0 --set world.recovery=0";
    let draw = |policy: &str, sets: &str, name: &str| {
        let arguments =
            format!("render epidemic-grid --policy {policy} {sure} {sets} --steps 5 --out {name}/");
        let said = stdout(&phalanx(folder, &arguments).success());
        assert_eq!(said, format!("{name}/step-….png: 5 steps\n"));
        (1..=5).map(|k| read_png(&folder.join(format!("{name}/step-{k:04}.png")))).collect::<Vec<Image>>()
    };
    let all = draw("none", "--set world.start=1", "all");
    let people = people(&all[0]);
    assert_eq!(people.len(), 36);
    let seen = |(_, _, pixels): &Image| people.iter().map(|&at| pixels[at]).collect::<Vec<_>>();
    let ill = |image: &Image| -> Vec<bool> {
        let is_ill = |pixel| match pixel {
            INFECTED => true,
            SUSCEPTIBLE => false,
            other => panic!("{other:?}"),
        };
        seen(image).into_iter().map(is_ill).collect()
    };
    let some: Vec<Vec<bool>> = draw("none", "--set world.start=0.06", "some").iter().map(ill).collect();
    let count = |ill: &[bool]| ill.iter().filter(|&&ill| ill).count();
    assert!((1..10).contains(&count(&some[0])), "{:?}", some[0]);
    for pair in some.windows(2) {
        for (i, &now) in pair[1].iter().enumerate() {
            let (row, column) = (i / 6, i % 6);
            let near = |&j: &usize| row.abs_diff(j / 6) + column.abs_diff(j % 6) <= 1;
            assert_eq!(now, (0..36).filter(near).any(|j| pair[0][j]), "person {i}");
        }
    }
    // Signs of what is done are on the people.
    assert_eq!(seen(&draw("protect", "--set world.start=0", "protect")[0]), [DARK; 36]);
    assert_eq!(seen(&draw("treat", "--set world.start=1", "treat")[0]), [OFF; 36]);
    // Those who recover are seen to.
    let sirs = "--set world.start=1 --set world.recovery=1 --set world.model=sirs --set world.waning=0";
    let immune = draw("none", sirs, "immune");
    assert_eq!((seen(&immune[0]), seen(&immune[1])), (vec![INFECTED; 36], vec![RECOVERED; 36]));
}

#[test]
fn a_club_is_drawn_the_same_every_time() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    for name in ["one.gif", "two.gif"] {
        let said = stdout(&phalanx(folder, &format!("render epidemic --policy both --out {name}")).success());
        assert_eq!(said, format!("{name}: 60 steps\n"));
    }
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("one.gif"), read("two.gif"));
    let frames = read_gif(&folder.join("one.gif"));
    assert!(frames.len() == 60 && frames[0].0.0 <= 900);
    // Rings: `both` is far too sure of what it does.
    let alarm = |image: &Image| image.2.iter().filter(|&&pixel| pixel == [0xD5, 0x5E, 0x00]).count();
    assert!(alarm(&frames[59].0) > 34 * 20);
}

/// Vehicles that drive, those that wait, and lights that are green, yellow and red.
const DRIVES: [u8; 3] = [0x00, 0x72, 0xB2];
const GREEN: [u8; 3] = [0x00, 0x9E, 0x73];
const YELLOW: [u8; 3] = [0xF0, 0xE4, 0x42];
const RED: [u8; 3] = [0xD5, 0x5E, 0x00];

fn count((_, _, pixels): &Image, colour: [u8; 3]) -> usize {
    pixels.iter().filter(|&&pixel| pixel == colour).count()
}

#[test]
fn traffic_fills_the_roads_and_lights_change() {
    let folder = TempDir::new().unwrap();
    let town = "render junctions-grid4x4 --set world.town.grid=[2,2] --set constraint=[] --policy cycle:4@30";
    // A frame for every second of a short film, so that yellow is seen.
    let said = stdout(&phalanx(folder.path(), &format!("{town} --steps 20 --out t.gif")).success());
    assert!(said.starts_with("t.gif: 20 steps"), "{said}");
    let frames = read_gif(&folder.path().join("t.gif"));
    assert_eq!(frames.len(), 100);
    assert_eq!(frames[0].1, 10);
    let images: Vec<&Image> = frames.iter().map(|(image, _)| image).collect();
    assert!(count(images[99], DRIVES) > count(images[0], DRIVES) + 50, "vehicles come");
    assert!(images.iter().all(|image| count(image, GREEN) > 0 && count(image, RED) > 0));
    // 30 s of a phase: it changes at seconds 30, 60 and 90, and is yellow for two of them.
    let legend = images.iter().map(|image| count(image, YELLOW)).min().unwrap();
    let is_yellow = |second: usize| count(images[second], YELLOW) > legend;
    let yellow: Vec<usize> = (0..100).filter(|&second| is_yellow(second)).collect();
    assert_eq!(yellow, [30, 31, 60, 61, 90, 91]);
    // A sheet, and a picture per step.
    phalanx(folder.path(), &format!("{town} --steps 20 --out t.png")).success();
    let (width, height, _) = read_png(&folder.path().join("t.png"));
    assert!(width > 1000 && height > 500, "{width} × {height}");
    phalanx(folder.path(), &format!("{town} --steps 20 --only 3,20 --out steps/")).success();
    let last = read_png(&folder.path().join("steps/step-0020.png"));
    assert!(count(&last, DRIVES) > 50);
    assert!(folder.path().join("steps/step-0003.png").exists());
}

#[test]
fn verdicts_are_drawn_on_roads_and_on_graphs() {
    let folder = TempDir::new().unwrap();
    let town = "eval junctions-fair --set world.town.grid=[2,2] --set horizon=60 --episodes 5";
    let [few, all] = [("cycle:4@30", 0), ("cycle", 4)].map(|(policy, safe)| {
        let arguments = format!("{town} --policy {policy} --map map.png --json");
        let judged = phalanx(folder.path(), &arguments).success();
        let judged: serde_json::Value = serde_json::from_str(&stdout(&judged)).unwrap();
        assert_eq!(judged["safe"], safe, "{judged}");
        assert!(judged.get("solved").is_none(), "no episode can end early: {judged}");
        count(&read_png(&folder.path().join("map.png")), GREEN)
    });
    let line =
        "eval synthetic --policy uniform --set constraint.0.at_least=0.1 --episodes 5 --map line.png --json";
    let judged: serde_json::Value =
        serde_json::from_str(&stdout(&phalanx(folder.path(), line).success())).unwrap();
    assert_eq!(judged["safe"], 10, "{judged}");
    assert!(count(&read_png(&folder.path().join("line.png")), GREEN) > 10 * 100);
    assert!(all > few + 4 * 100, "{all} green points where four junctions are safe, {few} where none is");
    let refused = |arguments: &str, wanted: &str| {
        let failed = phalanx(folder.path(), arguments).code(2);
        let message = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(message.contains(wanted) && message.lines().count() == 1, "{message}");
    };
    refused(
        &format!("{town} --policy cycle --set constraint=[] --map m.png"),
        "--map: there are no constraints",
    );
    assert!(!folder.path().join("m.png").exists());
}
