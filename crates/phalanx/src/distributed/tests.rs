//! Processes, here threads, that gather, tell and agree.

use std::sync::Arc;

use super::*;
use crate::graph::{Graph, Partition};
use crate::{Error, Ragged, Result};

/// Runs `work` in so many threads with the halo of a line of ten agents each.
fn crew<T: Send>(count: usize, work: impl Fn(&Halo, &Graph) -> T + Sync) -> Vec<T> {
    let (work, whole) = (&work, Graph::line(10).unwrap());
    let whole = &whole;
    std::thread::scope(|scope| {
        let start = |peers: Arc<ThreadCommunicator>| {
            scope.spawn(move || {
                let partition = Partition::new(whole, peers.count()).unwrap();
                let rank = peers.rank();
                let share = partition.part(whole, rank, 2, |i| vec![i as u32]);
                let graph = whole.part(share.ids.clone(), |id| partition.owner(id) == rank);
                let halo = Halo::new(peers, partition, &share, &graph).unwrap();
                work(&halo, &graph)
            })
        };
        let threads: Vec<_> = ThreadCommunicator::new(count).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn ghosts_hear_what_their_owners_say() {
    let rows = crew(3, |halo, graph| {
        let mine = |i: usize| graph.owned_agents().any(|own| own == i);
        let mut rows: Vec<Vec<u8>> = (0..2)
            .map(|k| {
                let entry = |i: usize| if mine(i) { 10 * k + graph.global_id(i) as u8 } else { 99 };
                (0..graph.agents()).map(entry).collect()
            })
            .collect();
        let mut messages = halo.messages();
        halo.pack(&rows.iter().map(|row| &row[..]).collect::<Vec<_>>(), &mut messages);
        let mut worked = false;
        halo.exchange(&mut messages, &mut || worked = true).unwrap();
        rows.iter_mut().enumerate().for_each(|(k, row)| halo.unpack(&messages, k, row));
        assert!(worked);
        (0..graph.agents()).map(|i| (graph.global_id(i), rows[0][i], rows[1][i])).collect::<Vec<_>>()
    });
    // Agents 0 to 2, 3 to 5 and 6 to 9, with two of the others on each side; in between nobody is missing.
    let heard = |ids: std::ops::Range<u32>| ids.map(|id| (id, id as u8, 10 + id as u8)).collect::<Vec<_>>();
    assert_eq!(rows, [heard(0..5), heard(1..8), heard(4..10)]);
}

#[test]
fn numbers_come_together_in_agent_order() {
    let found = crew(4, |halo, graph| {
        let own: Vec<f64> = graph.owned_agents().map(|i| f64::from(graph.global_id(i))).collect();
        let rows = (0..graph.agents()).map(|i| graph.global_id(i));
        let rows = Ragged::from_rows(rows.map(|id| vec![f64::from(id); id as usize % 3]));
        let mut sums = [own.len() as u64, 1];
        halo.fold(&mut sums, |a, b| a + b).unwrap();
        let ragged = halo.gather_ragged(graph, &rows).unwrap();
        (
            halo.gather_rows(1, &own).unwrap(),
            ragged.data().to_vec(),
            sums,
            halo.broadcast(vec![7, 8]).unwrap(),
        )
    });
    let all: Vec<f64> = (0..10).map(f64::from).collect();
    assert_eq!(found[0].0, all);
    assert_eq!(found[0].1, [1.0, 2.0, 2.0, 4.0, 5.0, 5.0, 7.0, 8.0, 8.0]);
    assert!(found[1].0.is_empty() && found[3].1.is_empty());
    assert!(found.iter().all(|(_, _, sums, heard)| sums == &[10, 4] && heard == &[7, 8]));
}

#[test]
fn a_failure_somewhere_is_one_everywhere() {
    let found = crew(3, |halo, _| {
        let rank = halo.peers().rank();
        let result: Result<usize> = if rank == 1 { Err(Error::config("kappa", "is bad")) } else { Ok(rank) };
        let agreed = halo.all_ok(result).map_err(|error| (error.to_string(), error.is_bad_input()));
        let fine = halo.all_ok(Ok(rank)).unwrap();
        let decided = halo.broadcast_decision(|| Ok(3)).unwrap();
        let failed =
            halo.broadcast_decision(|| Err(Error::Communicator { message: "no".into(), bad_input: false }));
        (agreed, fine, decided, failed.map_err(|error| error.to_string()))
    });
    for (rank, (agreed, fine, decided, failed)) in found.into_iter().enumerate() {
        assert_eq!(agreed, Err(("kappa: is bad".to_string(), true)));
        assert_eq!((fine, decided, failed), (rank, 3, Err("no".to_string())));
    }
}
