//! Ways through the network: shortest paths between the roads of a route, and the link to take from every
//! lane on them.

use crate::error::{Error, Result};
use crate::network::Network;
use std::collections::HashMap;

/// No drivable, no vehicle, no entry of a table.
pub(crate) const NONE: u32 = u32::MAX;

/// All routes of a demand. Routes of equal roads are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// The roads of all routes, one route after the other.
    path: Vec<u32>,
    /// For every entry of `path`: where the links of its road's lanes stand in `next`; `NONE` for the last
    /// road.
    turn: Vec<u32>,
    /// Links to take, by lane of a road; `NONE` where no link leads on.
    next: Vec<u32>,
    routes: Vec<Route>,
}

#[derive(Clone, Debug)]
struct Route {
    start: u32,
    end: u32,
    /// Lanes on which a vehicle can start.
    first_lanes: Vec<u32>,
}

/// Roads of all different routes together, at most: they take 80 MB.
const MOST_ROADS: usize = 10_000_000;

/// Finds routes and remembers what it has found.
pub(super) struct RouteFinder<'a> {
    network: &'a Network,
    routes: Routes,
    by_anchors: HashMap<Vec<usize>, Option<u32>>,
    by_ends: HashMap<(usize, usize), Option<Vec<u32>>>,
    /// Roads in `by_ends`.
    remembered: usize,
    by_roads: HashMap<(u32, u32, u32), u32>,
    /// Roads to which some link leads, per road.
    neighbours: Vec<Vec<u32>>,
}

impl<'a> RouteFinder<'a> {
    pub fn new(network: &'a Network) -> Self {
        Self {
            network,
            routes: Routes::default(),
            by_anchors: HashMap::new(),
            by_ends: HashMap::new(),
            remembered: 0,
            by_roads: HashMap::new(),
            neighbours: neighbours(network),
        }
    }

    /// The routes that were found.
    pub fn finish(self) -> Routes {
        self.routes
    }

    /// The route over `anchors`, or `None` where there is no way or only one road. Fails where routes are too
    /// long together.
    pub fn route(&mut self, anchors: &[usize]) -> Result<Option<u32>> {
        if let Some(&route) = self.by_anchors.get(anchors) {
            return Ok(route);
        }
        let path = self.path_over(anchors)?;
        let route = path.map(|path| self.add(&path));
        self.by_anchors.insert(anchors.to_vec(), route);
        Ok(route)
    }

    fn path_over(&mut self, anchors: &[usize]) -> Result<Option<Vec<u32>>> {
        let Some(&first) = anchors.first() else { return Ok(None) };
        let mut path = vec![first as u32];
        for pair in anchors.windows(2) {
            if pair[0] != pair[1] {
                let find = || {
                    let found = shortest_path(pair[0], pair[1], self.network, &self.neighbours);
                    self.remembered += found.as_ref().map_or(0, Vec::len);
                    found
                };
                let between = self.by_ends.entry((pair[0], pair[1])).or_insert_with(find);
                let Some(between) = between else { return Ok(None) };
                path.extend(&*between);
                if (self.routes.path.len() + path.len()).max(self.remembered) > MOST_ROADS {
                    let what = format!("their different routes have more than {MOST_ROADS} roads together");
                    return Err(Error::setting("flows", what));
                }
            }
        }
        Ok((path.len() > 1).then_some(path))
    }

    /// The first two roads that follow each other in `anchors` and have no way between them.
    pub fn gap(&self, anchors: &[usize]) -> Option<[usize; 2]> {
        let pairs = anchors.windows(2).map(|pair| [pair[0], pair[1]]).filter(|pair| pair[0] != pair[1]);
        let has_way =
            |[from, to]: [usize; 2]| shortest_path(from, to, self.network, &self.neighbours).is_some();
        pairs.into_iter().find(|&pair| !has_way(pair))
    }

    fn add(&mut self, path: &[u32]) -> u32 {
        let network = self.network;
        let start = self.routes.path.len() as u32;
        for k in 0..path.len() {
            let turn = match path[k..] {
                [road, next, after, ..] => self.turn(road, next, after),
                [road, next] => self.turn(road, next, NONE),
                _ => NONE,
            };
            self.routes.path.push(path[k]);
            self.routes.turn.push(turn);
        }
        let leads_on = |&lane: &usize| {
            network.links_of_lane(lane).iter().any(|&link| end_road(network, link) == path[1])
        };
        let lanes = network.roads()[path[0] as usize].lanes.clone();
        let first_lanes = lanes.filter(leads_on).map(|lane| lane as u32).collect();
        let end = self.routes.path.len() as u32;
        self.routes.routes.push(Route { start, end, first_lanes });
        (self.routes.routes.len() - 1) as u32
    }

    /// Where in the table of links those of `road` stand that lead to `next`, then to `after`.
    fn turn(&mut self, road: u32, next: u32, after: u32) -> u32 {
        let Self { network, routes, by_roads, .. } = self;
        *by_roads.entry((road, next, after)).or_insert_with(|| {
            let turn = routes.next.len() as u32;
            let lanes = network.roads()[road as usize].lanes.clone();
            routes.next.extend(lanes.map(|lane| best_link(network, lane, next, after)));
            turn
        })
    }
}

impl Routes {
    pub fn path(&self, route: u32) -> &[u32] {
        let route = &self.routes[route as usize];
        &self.path[route.start as usize..route.end as usize]
    }

    /// Where the route's first road stands in `path`.
    pub fn start(&self, route: u32) -> u32 {
        self.routes[route as usize].start
    }

    pub fn first_lanes(&self, route: u32) -> &[u32] {
        &self.routes[route as usize].first_lanes
    }

    /// The drivable after `drivable` for a vehicle at place `at` of its path: the next lane or link.
    #[inline]
    pub fn next_drivable(&self, network: &Network, at: u32, drivable: u32) -> u32 {
        if drivable as usize >= network.lane_count {
            return network.link(drivable as usize).end;
        }
        let road = network.lane_road[drivable as usize];
        match self.turn[self.find(at, road) as usize] {
            NONE => NONE,
            turn => self.next[turn as usize + drivable as usize - network.roads[road as usize].lanes.start],
        }
    }

    /// The place of `road` in the path, from place `at` on.
    #[inline]
    pub fn find(&self, at: u32, road: u32) -> u32 {
        let mut at = at as usize;
        while self.path[at] != road && self.turn[at] != NONE {
            at += 1;
        }
        at as u32
    }

    /// The last road of the path that place `at` belongs to.
    pub fn last_road(&self, at: u32) -> u32 {
        let mut at = at as usize;
        while self.turn[at] != NONE {
            at += 1;
        }
        self.path[at]
    }
}

fn end_road(network: &Network, link: u32) -> u32 {
    network.lane_road[network.link(link as usize).end as usize]
}

/// The link from `lane` to road `next` from whose end a link leads to road `after`: the one that changes
/// lanes least.
fn best_link(network: &Network, lane: usize, next: u32, after: u32) -> u32 {
    let index = |lane: usize| lane - network.roads()[network.lane_road(lane)].lanes.start;
    let mut best = (NONE, usize::MAX);
    for &link in network.links_of_lane(lane) {
        let end = network.link(link as usize).end as usize;
        let leads_on = |&link: &u32| end_road(network, link) == after;
        if end_road(network, link) == next
            && (after == NONE || network.links_of_lane(end).iter().any(leads_on))
        {
            let distance = index(end).abs_diff(index(lane));
            if distance < best.1 {
                best = (link, distance);
            }
        }
    }
    best.0
}

/// For every road, the roads that can follow, in the order in which the reference looks at them.
fn neighbours(network: &Network) -> Vec<Vec<u32>> {
    let mut reached = vec![usize::MAX; network.roads().len()];
    let mut all = Vec::with_capacity(network.roads().len());
    for (number, road) in network.roads().iter().enumerate() {
        for lane in road.lanes.clone() {
            for &link in network.links_of_lane(lane) {
                reached[end_road(network, link) as usize] = number;
            }
        }
        let roads = network.intersections()[road.end].roads.iter();
        all.push(roads.filter(|&&next| reached[next] == number).map(|&next| next as u32).collect());
    }
    all
}

/// The roads after `start` on the shortest way to `goal`, by the lengths of the roads entered.
fn shortest_path(start: usize, goal: usize, network: &Network, neighbours: &[Vec<u32>]) -> Option<Vec<u32>> {
    let count = network.roads().len();
    let (mut distance, mut from) = (vec![f64::INFINITY; count], vec![NONE; count]);
    let mut visited = vec![false; count];
    let mut heap = Heap::default();
    distance[start] = 0.0;
    heap.push(0.0, start as u32);
    loop {
        let road = heap.top()? as usize;
        if road == goal {
            break;
        }
        heap.pop();
        if std::mem::replace(&mut visited[road], true) {
            continue;
        }
        for &next in &neighbours[road] {
            let longer = distance[road] + network.roads()[next as usize].mean_length;
            if longer < distance[next as usize] {
                distance[next as usize] = longer;
                from[next as usize] = road as u32;
                heap.push(longer, next);
            }
        }
    }
    let mut path = vec![goal as u32];
    let mut before = from[goal];
    while before != NONE && before != start as u32 {
        path.push(before);
        before = from[before as usize];
    }
    path.reverse();
    Some(path)
}

/// A binary heap that gives equal keys in the order in which `std::priority_queue` of libstdc++ gives them.
#[derive(Default)]
struct Heap(Vec<(f64, u32)>);

impl Heap {
    fn top(&self) -> Option<u32> {
        self.0.first().map(|entry| entry.1)
    }

    fn push(&mut self, key: f64, road: u32) {
        self.0.push((key, road));
        self.sift_up(self.0.len() - 1, (key, road));
    }

    fn sift_up(&mut self, mut hole: usize, entry: (f64, u32)) {
        while hole > 0 && self.0[(hole - 1) / 2].0 > entry.0 {
            self.0[hole] = self.0[(hole - 1) / 2];
            hole = (hole - 1) / 2;
        }
        self.0[hole] = entry;
    }

    fn pop(&mut self) {
        let Some(last) = self.0.pop() else { return };
        let len = self.0.len();
        if len == 0 {
            return;
        }
        let mut hole = 0;
        // To the bottom along the smaller child, the right one unless it is larger.
        while 2 * hole + 2 < len {
            let right = 2 * hole + 2;
            let child = if self.0[right].0 > self.0[right - 1].0 { right - 1 } else { right };
            self.0[hole] = self.0[child];
            hole = child;
        }
        if 2 * hole + 2 == len {
            self.0[hole] = self.0[len - 1];
            hole = len - 1;
        }
        self.sift_up(hole, last);
    }
}
