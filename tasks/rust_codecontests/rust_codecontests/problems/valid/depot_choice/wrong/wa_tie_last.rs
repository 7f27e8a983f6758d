// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: of equally cheap villages it takes the one with the largest number.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let p: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let c: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut adj = vec![Vec::new(); n];
    for _ in 1..n {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        let l = it.next().unwrap();
        adj[a].push((b, l));
        adj[b].push((a, l));
    }
    let mut parent = vec![(usize::MAX, 0i64); n];
    let mut dist = vec![0i64; n];
    let mut order = Vec::with_capacity(n);
    let mut stack = vec![0];
    while let Some(v) = stack.pop() {
        order.push(v);
        for &(u, l) in &adj[v] {
            if u != parent[v].0 {
                parent[u] = (v, l);
                dist[u] = dist[v] + l;
                stack.push(u);
            }
        }
    }
    let mut sub = p.clone();
    for &v in order.iter().rev() {
        if parent[v].0 != usize::MAX {
            sub[parent[v].0] += sub[v];
        }
    }
    let mut cost = vec![0i64; n];
    cost[0] = (0..n).map(|i| p[i] * dist[i]).sum();
    let total = sub[0];
    for &v in order.iter().skip(1) {
        let (q, l) = parent[v];
        cost[v] = cost[q] + (total - 2 * sub[v]) * l;
    }
    let mut best = (i64::MAX, 0);
    for v in 0..n {
        if n > 2 && adj[v].len() < 2 {
            continue;
        }
        if cost[v] + c[v] <= best.0 {
            best = (cost[v] + c[v], v + 1);
        }
    }
    println!("{} {}", best.1, best.0);
}
