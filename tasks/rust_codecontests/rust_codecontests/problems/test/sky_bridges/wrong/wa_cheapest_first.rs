// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it always builds the cheapest bridge to an unreached town, which may lie behind a town that needs its own bridge anyway.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let cost: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut adj = vec![Vec::new(); n];
    for _ in 0..m {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        adj[a].push(b);
    }
    let mut order: Vec<usize> = (1..n).filter(|&i| cost[i] >= 0).collect();
    order.sort_by_key(|&i| cost[i]);
    let mut seen = vec![false; n];
    let mut stack = vec![0usize];
    seen[0] = true;
    let mut total = 0;
    let mut count = 0;
    let mut next = 0;
    loop {
        while let Some(v) = stack.pop() {
            for &u in &adj[v] {
                if !seen[u] {
                    seen[u] = true;
                    stack.push(u);
                }
            }
        }
        while next < order.len() && seen[order[next]] {
            next += 1;
        }
        if next == order.len() {
            break;
        }
        let v = order[next];
        seen[v] = true;
        stack.push(v);
        total += cost[v];
        count += 1;
    }
    if seen.iter().all(|&x| x) {
        println!("{} {}", total, count);
    } else {
        println!("-1");
    }
}
