// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: after each new bridge it searches the whole group from each of its islands.
use std::collections::VecDeque;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut adj: Vec<Vec<(usize, u64)>> = vec![Vec::new(); n + 1];
    let mut farthest = vec![0u64; n + 1];
    let bfs = |adj: &Vec<Vec<(usize, u64)>>, s: usize| -> Vec<(usize, u64)> {
        let mut seen = vec![false; adj.len()];
        seen[s] = true;
        let mut queue = VecDeque::new();
        queue.push_back((s, 0u64));
        let mut list = Vec::new();
        while let Some((v, d)) = queue.pop_front() {
            list.push((v, d));
            for &(u, w) in &adj[v] {
                if !seen[u] {
                    seen[u] = true;
                    queue.push_back((u, d + w));
                }
            }
        }
        list
    };
    for _ in 0..q {
        let kind = it.next().unwrap();
        let u: usize = it.next().unwrap().parse().unwrap();
        if kind == "F" {
            println!("{}", farthest[u]);
            continue;
        }
        let v: usize = it.next().unwrap().parse().unwrap();
        let w: u64 = it.next().unwrap().parse().unwrap();
        let reached = bfs(&adj, u);
        if reached.iter().any(|x| x.0 == v) {
            continue;
        }
        adj[u].push((v, w));
        adj[v].push((u, w));
        for (x, _) in bfs(&adj, u) {
            farthest[x] = bfs(&adj, x).iter().map(|y| y.1).max().unwrap();
        }
    }
}
