// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

type Table = [u64; 6];
const NEVER: u64 = 1_000_000_000_000_000_000;

struct Kingdom {
    k: usize,
    tables: Vec<Table>,
}

impl Kingdom {
    fn with_child(&self, mut table: Table, child: &Table) -> Table {
        for d in 0..self.k {
            let further = if d + 1 < self.k { child[d + 1] } else { NEVER };
            table[d] += child[0].min(further);
        }
        table
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let nums: Vec<u64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, k) = (nums[0] as usize, nums[1] as usize);
    let seen: Vec<usize> = nums[2..2 + n].iter().map(|&x| x as usize - 1).collect();
    let tables = nums[2 + n..2 + 2 * n].iter().map(|&c| [c, 0, 0, 0, 0, 0]).collect();
    let mut kingdom = Kingdom { k, tables };
    let mut watchers = vec![0usize; n];
    for &t in &seen {
        watchers[t] += 1;
    }
    let mut order: Vec<usize> = (0..n).filter(|&t| watchers[t] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        let t = order[at];
        at += 1;
        kingdom.tables[seen[t]] = kingdom.with_child(kingdom.tables[seen[t]], &kingdom.tables[t]);
        watchers[seen[t]] -= 1;
        if watchers[seen[t]] == 0 {
            order.push(seen[t]);
        }
    }
    let mut total = 0;
    for start in 0..n {
        let mut ring = Vec::new();
        let mut t = start;
        while watchers[t] > 0 {
            watchers[t] = 0;
            ring.push(t);
            t = seen[t];
        }
        let len = ring.len();
        let best = (0..len.min(k))
            .map(|cut| {
                let mut table = kingdom.tables[ring[(cut + 1) % len]];
                for i in 2..=len {
                    table = kingdom.with_child(kingdom.tables[ring[(cut + i) % len]], &table);
                }
                table[0]
            })
            .min();
        total += best.unwrap_or(0);
    }
    println!("{}", total);
}
