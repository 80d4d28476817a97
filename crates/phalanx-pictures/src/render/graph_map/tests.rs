use super::*;

/// Of every shape.
pub fn graphs() -> Vec<Graph> {
    let graphs = [
        Graph::line(1),
        Graph::line(2),
        Graph::line(50),
        Graph::grid(5, 7),
        Graph::grid(2, 300),
        Graph::grid(300, 2),
        Graph::ring(30),
        Graph::star(40),
        Graph::complete(20),
        Graph::small_world(200, 4, 0.1, 1),
        Graph::scale_free(300, 2, 1),
        Graph::erdos_renyi(60, 0.02, 1),
        Graph::random_geometric(1000, 0.06, 1),
    ];
    graphs.into_iter().map(Result::unwrap).collect()
}

#[test]
fn a_map_is_the_same_every_time() {
    for graph in graphs() {
        assert_eq!(GraphMap::of(&graph).places, GraphMap::of(&graph).places);
    }
}

#[test]
fn a_grid_is_drawn_as_one() {
    let map = GraphMap::of(&Graph::grid(3, 4).unwrap());
    let ((x, y), (right, same), (left, below)) = (map.places[0], map.places[1], map.places[4]);
    assert_eq!((x, y, right - x), (left, same, below - y));
    assert_eq!(map.links.len(), 17);
    let part = GraphMap::of(&Graph::grid(30, 10).unwrap());
    assert_eq!((part.agents.len(), part.agents[10], part.agents[199]), (200, 10, 199));
    assert_eq!(part.left_out, ["the first 20 × 10 of 30 × 10 agents"]);
    // The numbers of a part are those of the whole.
    assert_eq!(GraphMap::of(&Graph::grid(30, 40).unwrap()).agents[20], 40);
}

#[test]
fn a_long_line_goes_to_and_fro() {
    let map = GraphMap::of(&Graph::line(1000).unwrap());
    let apart = |&(a, b): &(usize, usize)| {
        let ((x, y), (right, below)) = (map.places[a], map.places[b]);
        (x - right).hypot(y - below)
    };
    let lengths: Vec<f32> = map.links.iter().map(apart).collect();
    assert_eq!(lengths.len(), 399);
    assert!(lengths.iter().all(|length| (length - lengths[0]).abs() < 0.01));
    assert_eq!(map.left_out, ["the first 400 of 1000 agents"]);
}
