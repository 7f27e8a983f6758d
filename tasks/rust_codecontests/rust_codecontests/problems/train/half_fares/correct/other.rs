// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeSet;
use std::io::{self, BufRead};

const INF: i64 = i64::MAX;

fn spread(adj: &[Vec<(usize, i64)>], dist: &mut Vec<i64>) {
    let mut set: BTreeSet<(i64, usize)> = dist.iter().enumerate().filter(|x| *x.1 < INF).map(|(v, &d)| (d, v)).collect();
    while let Some(first) = set.iter().next().cloned() {
        set.remove(&first);
        let (d, v) = first;
        for &(u, w) in &adj[v] {
            if d + w < dist[u] {
                set.remove(&(dist[u], u));
                dist[u] = d + w;
                set.insert((dist[u], u));
            }
        }
    }
}

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines().map(|l| l.unwrap());
    let head: Vec<usize> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m, t) = (head[0], head[1], head[2]);
    let mut adj = vec![vec![]; n];
    for _ in 0..m {
        let row: Vec<i64> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
        let (a, b) = (row[0] as usize - 1, row[1] as usize - 1);
        adj[a].push((b, row[2]));
        adj[b].push((a, row[2]));
    }
    // one layer for each number of vouchers: free[v] = a voucher may be used next
    let mut free = vec![INF; n];
    free[0] = 0;
    spread(&adj, &mut free);
    let mut best = (free[n - 1], 0);
    for used in 1..=t {
        let mut just = vec![INF; n];
        for v in 0..n {
            if free[v] < INF {
                for &(u, w) in &adj[v] {
                    just[u] = just[u].min(free[v] + w / 2);
                }
            }
        }
        let mut next = vec![INF; n];
        for v in 0..n {
            if just[v] < INF {
                for &(u, w) in &adj[v] {
                    next[u] = next[u].min(just[v] + w);
                }
            }
        }
        spread(&adj, &mut next);
        let d = just[n - 1].min(next[n - 1]);
        if d < best.0 {
            best = (d, used);
        }
        free = next;
    }
    if best.0 == INF {
        println!("-1");
    } else {
        println!("{} {}", best.0, best.1);
    }
}
