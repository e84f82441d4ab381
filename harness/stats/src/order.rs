//! In which order servers and rungs take their turns.
//!
//! A machine drifts: it warms up, its caches fill. An order drawn from a seed and balanced over positions keeps a drift
//! from favouring a server.

use crate::random::Random;

/// For each block, the indices of the servers in the order of their trials.
///
/// Every `servers` blocks in succession are the rows of a cyclic Latin square in random order: each server comes first
/// once, second once, and so on. The square's columns are dealt afresh each time, so that neighbours change. For two
/// servers this is AB and BA, each exactly once in every two blocks, in random order. Stopping early keeps the balance
/// to within one block of a square.
///
/// A seed's first blocks are the same however many are asked for, so that a campaign can be resumed or extended.
pub fn block_orders(servers: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Random::seeded(seed);
    let mut orders = Vec::with_capacity(blocks);
    while orders.len() < blocks {
        let mut dealt: Vec<usize> = (0..servers).collect();
        random.shuffle(&mut dealt);
        let mut rotations: Vec<usize> = (0..servers.max(1)).collect();
        random.shuffle(&mut rotations);
        for rotation in rotations.into_iter().take(blocks - orders.len()) {
            let mut row = dealt.clone();
            row.rotate_left(rotation.min(servers));
            orders.push(row);
        }
    }
    orders
}

/// The indices of the rungs in the order to run them, every order equally likely.
pub fn rung_order(rungs: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rungs).collect();
    Random::seeded(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times_first(orders: &[Vec<usize>], server: usize) -> usize {
        orders.iter().filter(|order| order[0] == server).count()
    }

    #[test]
    fn twenty_blocks_of_two_servers_put_each_first_exactly_ten_times() {
        for seed in 0..100 {
            let orders = block_orders(2, 20, seed);
            assert_eq!(orders.len(), 20);
            assert_eq!((times_first(&orders, 0), times_first(&orders, 1)), (10, 10));
        }
    }

    #[test]
    fn two_servers_are_balanced_to_within_one_block_wherever_a_campaign_stops() {
        let orders = block_orders(2, 30, 5);
        for blocks in 1..=30 {
            let [a, b] = [0, 1].map(|server| times_first(&orders[..blocks], server));
            assert!(a.abs_diff(b) <= 1);
        }
    }

    #[test]
    fn two_servers_do_not_simply_alternate() {
        let alternating = |order: &[Vec<usize>]| order.windows(2).all(|pair| pair[0] != pair[1]);
        let count = (0..100)
            .filter(|&seed| alternating(&block_orders(2, 20, seed)))
            .count();
        assert!(count <= 2, "{count} of 100");
    }

    #[test]
    fn five_servers_are_each_in_every_position_once_in_five_blocks() {
        for seed in 0..50 {
            for square in block_orders(5, 20, seed).chunks(5) {
                for position in 0..5 {
                    let mut servers: Vec<usize> = square.iter().map(|row| row[position]).collect();
                    servers.sort_unstable();
                    assert_eq!(servers, [0, 1, 2, 3, 4]);
                }
            }
        }
    }

    #[test]
    fn more_blocks_continue_the_same_orders() {
        assert_eq!(block_orders(3, 30, 9)[..10], block_orders(3, 10, 9));
        assert_ne!(block_orders(3, 30, 9), block_orders(3, 30, 10));
    }

    #[test]
    fn a_seed_gives_the_same_orders_for_ever() {
        assert_eq!(block_orders(2, 4, 1), [[0, 1], [1, 0], [1, 0], [0, 1]]);
        assert_eq!(block_orders(3, 3, 1), [[2, 0, 1], [1, 2, 0], [0, 1, 2]]);
        assert_eq!(rung_order(6, 1), [1, 5, 2, 0, 3, 4]);
    }

    #[test]
    fn one_server_and_none_have_an_order_too() {
        assert_eq!(block_orders(1, 3, 1), [[0], [0], [0]]);
        assert_eq!(block_orders(0, 2, 1), [[0; 0]; 2]);
        assert!(rung_order(0, 1).is_empty());
    }
}
