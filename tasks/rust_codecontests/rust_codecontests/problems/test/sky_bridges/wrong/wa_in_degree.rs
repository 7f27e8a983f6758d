// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it builds bridges only to towns without an incoming road and overlooks cycles.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let cost: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut adj = vec![Vec::new(); n];
    let mut indegree = vec![0; n];
    for _ in 0..m {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        if a != b {
            adj[a].push(b);
            indegree[b] += 1;
        }
    }
    let mut seen = vec![false; n];
    let mut stack = vec![0usize];
    seen[0] = true;
    let mut total = 0i64;
    let mut count = 0;
    for i in 1..n {
        if indegree[i] == 0 {
            if cost[i] < 0 {
                println!("-1");
                return;
            }
            total += cost[i];
            count += 1;
            seen[i] = true;
            stack.push(i);
        }
    }
    while let Some(v) = stack.pop() {
        for &u in &adj[v] {
            if !seen[u] {
                seen[u] = true;
                stack.push(u);
            }
        }
    }
    if seen.contains(&false) {
        println!("-1");
    } else {
        println!("{} {}", total, count);
    }
}
