//! One moment of a game that somebody else plays, step by step, as an image of the board alone.

use std::sync::Arc;

use phalanx::run::Config;
use phalanx::world::{
    EpidemicSpec, JunctionsSettings, LineSettings, PistonballSpec, PlatoonSpec, Wireless, World,
};
use phalanx::{Error, Result};

use super::epidemic;
use super::episode::{no_pictures, queue, sending, wireless_part};
use super::film::{Film, Step};
use super::graph_map::GraphMap;
use super::junctions::{self, RoadMap, TrafficStep};
use super::line::{self, LineFilm};
use super::pistonball::{self, Stage};
use super::platoon::{self, PlatoonFilm, PlatoonStep};
use super::raster::Raster;
use super::shape::{Picture, Point, Shape};
use super::wireless::{WirelessFilm, WirelessStep};

/// What there is to see.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment<'a> {
    /// Everybody's state now.
    pub states: &'a [u8],
    /// Everybody's action in the step that led here; none right after a start.
    pub actions: Option<&'a [u8]>,
    /// Everybody's reward of that step, by which deliveries of `wireless` are known; empty if it is not.
    pub rewards: &'a [f32],
    /// What agents share: x, y, vx, vy, ω and angle of the ball of `pistonball`; the leader's speed, then
    /// every vehicle's headway, speed and acceleration in `platoon`; empty in other worlds.
    pub shared: &'a [f32],
    /// What the episode has to show beside it: the traffic of `junctions`, whose roads are empty without.
    pub scene: Option<&'a phalanx::world::Scene>,
}

/// Draws moments of one world, without title, status and legend: an image for programs that look on or make
/// films of their own. All images of a board have the same size. Of a large graph a part is drawn, as
/// `phalanx render` does.
///
/// ```
/// use phalanx::run::Config;
/// use phalanx_pictures::render::{Board, Moment};
///
/// let board = Board::of(&Config::preset("pistonball")?)?;
/// let ball = [400.0, 300.0, 0.0, 0.0, 0.0, 0.5];
/// let moment = Moment { states: &[4; 10], shared: &ball, ..Moment::default() };
/// let (width, height) = board.size();
/// assert_eq!(board.draw(&moment)?.len(), 3 * width * height);
/// # Ok::<(), phalanx::Error>(())
/// ```
#[derive(Debug)]
pub struct Board {
    world: Arc<dyn World>,
    scene: Scene,
    raster: Raster,
    /// Of every image, in pixels: whole numbers.
    size: [f32; 2],
    /// Pixels per unit of a drawing.
    scale: f32,
}

/// What is known of a world's pictures before a moment is.
#[derive(Debug)]
enum Scene {
    Line,
    Wireless(Wireless),
    Pistonball,
    Platoon,
    Epidemic(GraphMap),
    Roads(RoadMap),
}

/// White around boards that have no walls.
const MARGIN: f32 = 8.0;
/// Films have no width above this; nor have boards a height.
const TALLEST: f32 = 900.0;

impl Scene {
    fn margin(&self) -> f32 {
        if let Scene::Pistonball = self { 0.0 } else { MARGIN }
    }

    /// How many numbers agents share, and what they are.
    fn shared(&self, agents: usize) -> (usize, &'static str) {
        match self {
            Scene::Pistonball => (6, "x, y, vx, vy, omega and angle of the ball"),
            Scene::Platoon => {
                (1 + 3 * agents, "the leader's speed, then headway, speed and acceleration per vehicle")
            }
            _ => (0, "none"),
        }
    }

    /// The size of a moment's drawing, which is that of every moment, and what is on it.
    fn drawing(&self, agents: usize, moment: &Moment<'_>) -> (Point, Vec<Shape>) {
        let of_film = |film: &dyn Film| (film.size(), film.draw(0));
        match self {
            Scene::Line => {
                let drawn = 0..agents.min(line::MOST_AGENTS);
                of_film(&LineFilm { agents, steps: vec![step(moment, drawn)] })
            }
            Scene::Wireless(world) => of_film(&wireless(world, moment)),
            Scene::Pistonball => pistonball(agents, moment),
            Scene::Platoon => {
                let actions = moment.actions.map(<[u8]>::to_vec).unwrap_or_default();
                let step = PlatoonStep { actions, ..PlatoonStep::of_shared(moment.shared) };
                let step = step.of_first(platoon::MOST_VEHICLES);
                of_film(&PlatoonFilm { vehicles: agents, steps: vec![step] })
            }
            Scene::Epidemic(map) => {
                (map.size, epidemic::draw(map, &step(moment, map.agents.iter().copied())))
            }
            Scene::Roads(map) => {
                let seen =
                    junctions::traffic(moment.scene).map(|traffic| TrafficStep::of(map, traffic, None));
                (map.size, seen.unwrap_or_default().draw(map))
            }
        }
    }
}

impl Board {
    /// The board of a configuration's world, if that is built in and no `table`. Nothing
    /// but `[world]` and `[network]` matters. In an epidemic places are looked for, O(m²) for the m ≤ 400
    /// people drawn.
    pub fn of(config: &Config) -> Result<Board> {
        let settings = &config.world;
        let world = || phalanx::run::world(config);
        let (world, scene) = if settings.settings_of::<LineSettings>().is_some() {
            (world()?, Scene::Line)
        } else if let Some(spec) = settings.settings_of() {
            (world()?, Scene::Wireless(Wireless::new(spec)?))
        } else if settings.settings_of::<PistonballSpec>().is_some() {
            (world()?, Scene::Pistonball)
        } else if settings.settings_of::<PlatoonSpec>().is_some() {
            (world()?, Scene::Platoon)
        } else if settings.settings_of::<EpidemicSpec>().is_some() {
            let world = world()?;
            let map = GraphMap::of(world.graph());
            (world, Scene::Epidemic(map))
        } else if settings.settings_of::<JunctionsSettings>().is_some() {
            let world = world()?;
            let map = junctions::map_of(&*world).ok_or_else(|| no_pictures(settings.kind()))?;
            (world, Scene::Roads(map))
        } else {
            return Err(no_pictures(settings.kind()));
        };
        let agents = world.graph().agents();
        let (states, shared) = (vec![0; agents], vec![0.0; scene.shared(agents).0]);
        let blank = Moment { states: &states, shared: &shared, ..Moment::default() };
        let ((width, height), _) = scene.drawing(agents, &blank);
        let around = 2.0 * scene.margin();
        let scale = (TALLEST / (height + around)).min(1.0);
        let size = [width, height].map(|side| (scale * (side + around)).ceil());
        Ok(Board { world, scene, raster: Raster::default(), size, scale })
    }

    /// Width and height of every image, in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.size[0] as usize, self.size[1] as usize)
    }

    /// The image of a moment: red, green and blue of every pixel, row by row from the upper left.
    pub fn draw(&self, moment: &Moment<'_>) -> Result<Vec<u8>> {
        self.check(moment)?;
        let ([width, height], margin) = (self.size, self.scale * self.scene.margin());
        let mut picture = Picture { width, height, shapes: Vec::new() };
        let (_, shapes) = self.scene.drawing(self.agents(), moment);
        picture.place(&shapes, (margin, margin), self.scale);
        let image = self.raster.draw(&picture, 1.0);
        Ok(image.map_err(|error| Error::config("world", error.to_string()))?.pixels.into_flattened())
    }

    fn agents(&self) -> usize {
        self.world.graph().agents()
    }

    /// Refuses what does not belong to this world.
    fn check(&self, moment: &Moment<'_>) -> Result<()> {
        let Moment { states, actions, rewards, shared, scene: _ } = *moment;
        let agents = self.agents();
        let one_each = |field: &str, length: usize| {
            let message = || format!("has {length} entries; the world has {agents} agents");
            if length == agents { Ok(()) } else { Err(Error::config(field, message())) }
        };
        let below = |field: &str, values: &[u8], most: &dyn Fn(usize) -> usize| {
            one_each(field, values.len())?;
            match values.iter().enumerate().find(|&(i, &value)| usize::from(value) >= most(i)) {
                None => Ok(()),
                Some((i, value)) => {
                    let message = format!("agent {i} has {value}; allowed are 0 to {}", most(i) - 1);
                    Err(Error::config(field, message))
                }
            }
        };
        below("states", states, &|i| self.world.states(i))?;
        if let Some(actions) = actions {
            below("actions", actions, &|i| self.world.actions(i))?;
        }
        if !rewards.is_empty() {
            one_each("rewards", rewards.len())?;
        }
        if let Scene::Roads(_) = self.scene {
            // The traffic is drawn, not what is counted of it.
            return Ok(());
        }
        let (wanted, what) = self.scene.shared(agents);
        if shared.len() != wanted {
            let message = format!("has {} numbers; {wanted} are needed: {what}", shared.len());
            return Err(Error::config("shared", message));
        }
        if let Some(number) = shared.iter().find(|number| !number.is_finite()) {
            return Err(Error::config("shared", format!("{number} is no finite number")));
        }
        Ok(())
    }
}

/// Those who are drawn.
fn step(moment: &Moment<'_>, drawn: impl Iterator<Item = usize> + Clone) -> Step {
    let of_drawn = |values: &[u8]| drawn.clone().map(|i| values[i]).collect();
    let actions = moment.actions.map(of_drawn).unwrap_or_default();
    Step { states: of_drawn(moment.states), actions, ..Step::default() }
}

fn wireless(world: &Wireless, moment: &Moment<'_>) -> WirelessFilm {
    let (film, drawn) = wireless_part(world);
    let sends = |actions: &[u8]| {
        // Whether a queue was empty before the step is not seen after it; nothing arrived in either case.
        let is_paid = |user: usize| moment.rewards.get(user).is_some_and(|&reward| reward > 0.0);
        let send = |&user: &usize| sending(world, user, |other| actions[other], false, is_paid(user));
        drawn.iter().map(send).collect()
    };
    let step = WirelessStep {
        queues: drawn.iter().map(|&user| queue(world, user, moment.states[user])).collect(),
        sends: moment.actions.map(sends).unwrap_or_default(),
        ..WirelessStep::default()
    };
    WirelessFilm { steps: vec![step], ..film }
}

fn pistonball(pistons: usize, moment: &Moment<'_>) -> (Point, Vec<Shape>) {
    let (x, y, angle) = (moment.shared[0], moment.shared[1], moment.shared[5]);
    let first = pistonball::page(pistons, x);
    let drawn = first..first + pistonball::drawn(pistons);
    let stage = Stage::whole(pistons, first);
    let mut shapes = stage.walls();
    shapes.extend(stage.pistons(&moment.states[drawn.clone()], x));
    shapes.extend(moment.actions.into_iter().flat_map(|actions| stage.signs(&actions[drawn.clone()])));
    shapes.extend(stage.ball((x, y), angle));
    ((stage.width(), stage.height()), shapes)
}

#[cfg(test)]
mod tests {
    use phalanx::world::{Evolution, Place, Purpose, Stream};

    use super::*;

    fn board(preset: &str, sets: &[(&str, &str)]) -> Board {
        let config = Config::preset(preset).unwrap();
        let config = if sets.is_empty() { config } else { config.with_all(sets.iter().copied()).unwrap() };
        Board::of(&config).unwrap()
    }

    /// Pixels, and how many there are in a row.
    fn pixels(board: &Board, moment: &Moment<'_>) -> (Vec<[u8; 3]>, usize) {
        let bytes = board.draw(moment).unwrap();
        let (width, height) = board.size();
        assert_eq!(bytes.len(), 3 * width * height);
        (bytes.as_chunks::<3>().0.to_vec(), width)
    }

    /// The smallest box that holds all differences: left, top, right and bottom, the last two not in it.
    fn changed(board: &Board, before: &Moment<'_>, after: &Moment<'_>) -> Option<[usize; 4]> {
        let ((before, width), (after, _)) = (pixels(board, before), pixels(board, after));
        let places = before.iter().zip(&after).enumerate().filter(|(_, (a, b))| a != b);
        let places = places.map(|(at, _)| (at % width, at / width));
        places.fold(None, |found, (x, y)| {
            let [left, top, right, bottom] = found.unwrap_or([x, y, x + 1, y + 1]);
            Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)])
        })
    }

    fn ball(x: f32, y: f32, angle: f32) -> [f32; 6] {
        [x, y, 0.0, 0.0, 0.0, angle]
    }

    #[test]
    fn every_world_is_drawn_with_and_without_actions() {
        let cases = [
            ("synthetic", vec![]),
            ("synthetic", vec![("world.n", "1000")]),
            ("wireless", vec![]),
            ("wireless-grid", vec![("world.rows", "30"), ("world.columns", "3")]),
            ("pistonball", vec![]),
            ("pistonball", vec![("world.n", "2")]),
            ("pistonball", vec![("world.n", "200")]),
            ("epidemic", vec![]),
            ("epidemic-grid", vec![("world.n", "1000")]),
        ];
        for (preset, sets) in cases {
            let board = board(preset, &sets);
            let agents = board.agents();
            let (width, height) = board.size();
            assert!(width <= 900 && height <= 900, "{preset}: {width} × {height}");
            let place = ball(100.0, 300.0, 0.5);
            let shared = if preset == "pistonball" { &place[..] } else { &[] };
            let (zeros, ones) = (vec![0; agents], vec![1; agents]);
            let start = Moment { states: &zeros, shared, ..Moment::default() };
            let other = Moment { states: &ones, ..start };
            let acted = Moment { actions: Some(&ones), ..start };
            assert_eq!(changed(&board, &start, &start), None, "{preset} {sets:?}");
            assert!(changed(&board, &start, &other).is_some(), "{preset} {sets:?}");
            assert!(changed(&board, &start, &acted).is_some(), "{preset} {sets:?}");
        }
    }

    /// Without traffic its roads are empty; with it, vehicles are on them and lights change.
    #[test]
    fn traffic_is_seen_on_its_roads() {
        let board = board("junctions-grid4x4", &[("world.town.grid", "[2, 2]")]);
        let Evolution::Joint(joint) = board.world.evolution() else { panic!() };
        let place = Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory: 0 };
        let mut episode = joint.begin(&Stream::new(1), place);
        let mut rewards = vec![0.0; 4 * board.world.channels().len()];
        (0..20).for_each(|_| _ = episode.step(&[0; 4], &[], &mut rewards));
        let empty = Moment { states: &[0; 4], ..Moment::default() };
        let busy = Moment { scene: episode.scene(), ..empty };
        let (before, _) = pixels(&board, &busy);
        assert!(changed(&board, &empty, &busy).is_some());
        // What is counted of it is not drawn, and may come along.
        assert_eq!(pixels(&board, &Moment { shared: &[1.0; 3], ..busy }).0, before);
        let mut other = joint.begin(&Stream::new(1), place);
        (0..20).for_each(|_| _ = other.step(&[1; 4], &[], &mut rewards));
        assert!(changed(&board, &busy, &Moment { scene: other.scene(), ..empty }).is_some());
    }

    /// Pixels are those of the game but for the walls, of which 12 are drawn of 40.
    #[test]
    fn a_ball_that_moves_changes_what_is_around_it() {
        let board = board("pistonball", &[]);
        assert_eq!(board.size(), (424, 511));
        let (at, turned, up) = (ball(200.0, 300.0, 0.0), ball(200.0, 300.0, 2.0), ball(200.0, 250.0, 0.0));
        let moment = |shared| Moment { states: &[0; 10], shared, ..Moment::default() };
        let [left, top, right, bottom] = changed(&board, &moment(&at), &moment(&up)).unwrap();
        assert_eq!([left, top, right, bottom], [200 - 40 - 28, 250 - 40 - 28, 200 + 40 - 28, 300 + 40 - 28]);
        let [left, top, right, bottom] = changed(&board, &moment(&at), &moment(&turned)).unwrap();
        assert!(left >= 132 && right <= 212 && top >= 232 && bottom <= 312, "{left} {top} {right} {bottom}");
        // A piston that goes up: its own column alone.
        let raised = Moment { states: &[0, 0, 0, 0, 0, 0, 0, 0, 9, 0], ..moment(&at) };
        let [left, top, right, bottom] = changed(&board, &moment(&at), &raised).unwrap();
        assert!(left >= 332 && right <= 372 && top >= 491 - 36 - 6 - 28 && bottom <= 492);
    }

    /// A ball that is nowhere near the game is not drawn; nothing breaks.
    #[test]
    fn far_away_is_no_error() {
        for n in ["2", "50"] {
            let board = board("pistonball", &[("world.n", n)]);
            let states = vec![16; board.agents()];
            for place in [1e30, -1e30, f32::MAX, -5000.0] {
                let shared = ball(place, place, place);
                pixels(&board, &Moment { states: &states, shared: &shared, ..Moment::default() });
            }
        }
    }

    /// A delivery is known by its reward; a collision by what others do.
    #[test]
    fn rewards_and_collisions_are_seen() {
        let board = board("wireless", &[]);
        let agents = board.agents();
        let states = vec![1; agents];
        // Agent 0 sends to its lower right, where agent 1 may send to its lower left.
        let (mut alone, mut both) = (vec![0; agents], vec![0; agents]);
        (alone[0], both[0], both[1]) = (4, 4, 3);
        let mut rewards = vec![0.0; agents];
        rewards[0] = 1.0;
        let sent = Moment { states: &states, actions: Some(&alone), ..Moment::default() };
        let count = |moment: &Moment<'_>, colour: [u8; 3]| {
            pixels(&board, moment).0.into_iter().filter(|&pixel| pixel == colour).count()
        };
        let (green, orange) = ([0x00, 0x9E, 0x73], [0xE6, 0x9F, 0x00]);
        assert_eq!((count(&sent, green), count(&sent, orange)), (0, 0));
        assert!(count(&Moment { rewards: &rewards, ..sent }, green) > 50);
        assert!(count(&Moment { actions: Some(&both), ..sent }, orange) > 50);
    }

    #[test]
    fn what_does_not_belong_to_the_world_is_named() {
        let (line, pistons) = (board("synthetic", &[]), board("pistonball", &[]));
        let message = |board: &Board, moment: Moment<'_>| board.draw(&moment).unwrap_err().to_string();
        let good = Moment { states: &[0; 10], ..Moment::default() };
        let bad = |states| message(&line, Moment { states, ..good });
        assert_eq!(bad(&[0; 9]), "states: has 9 entries; the world has 10 agents");
        assert_eq!(bad(&[0, 0, 0, 2, 0, 0, 0, 0, 0, 0]), "states: agent 3 has 2; allowed are 0 to 1");
        let bad = |actions| message(&line, Moment { actions: Some(actions), ..good });
        assert_eq!(bad(&[]), "actions: has 0 entries; the world has 10 agents");
        assert_eq!(bad(&[9; 10]), "actions: agent 0 has 9; allowed are 0 to 1");
        let rewards = message(&line, Moment { rewards: &[0.0; 3], ..good });
        assert_eq!(rewards, "rewards: has 3 entries; the world has 10 agents");
        let shared = message(&line, Moment { shared: &[1.0], ..good });
        assert_eq!(shared, "shared: has 1 numbers; 0 are needed: none");
        let shared = message(&pistons, good);
        assert!(shared.starts_with("shared: has 0 numbers; 6 are needed: x, y, vx"), "{shared}");
        let shared = message(&pistons, Moment { shared: &ball(f32::NAN, 1.0, 0.0), ..good });
        assert_eq!(shared, "shared: NaN is no finite number");
    }

    #[test]
    fn worlds_without_pictures_have_no_board() {
        let config = "[world]\nkind = \"table\"\nfile = \"model.json\"";
        let config = Config::from_toml(config, std::path::Path::new("")).unwrap();
        let error = Board::of(&config).unwrap_err().to_string();
        assert_eq!(
            error,
            "world.kind: `table` has no pictures; line, wireless, pistonball, platoon, epidemic and junctions have"
        );
    }
}
