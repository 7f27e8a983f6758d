// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it takes the minimum over all towns of a component, so the mark -1 counts as a price or as impossible.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let cost: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut adj = vec![Vec::new(); n];
    let mut rev = vec![Vec::new(); n];
    for _ in 0..m {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        adj[a].push(b);
        rev[b].push(a);
    }
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    for s in 0..n {
        if seen[s] {
            continue;
        }
        seen[s] = true;
        let mut stack = vec![(s, 0usize)];
        while let Some((v, i)) = stack.pop() {
            if i < adj[v].len() {
                stack.push((v, i + 1));
                let u = adj[v][i];
                if !seen[u] {
                    seen[u] = true;
                    stack.push((u, 0));
                }
            } else {
                order.push(v);
            }
        }
    }
    let mut comp = vec![usize::MAX; n];
    let mut cheapest: Vec<Option<i64>> = Vec::new();
    for &s in order.iter().rev() {
        if comp[s] != usize::MAX {
            continue;
        }
        let id = cheapest.len();
        cheapest.push(None);
        comp[s] = id;
        let mut stack = vec![s];
        while let Some(v) = stack.pop() {
            cheapest[id] = Some(cheapest[id].map_or(cost[v], |c| c.min(cost[v])));
            for &u in &rev[v] {
                if comp[u] == usize::MAX {
                    comp[u] = id;
                    stack.push(u);
                }
            }
        }
    }
    let mut entered = vec![false; cheapest.len()];
    entered[comp[0]] = true;
    for v in 0..n {
        for &u in &adj[v] {
            if comp[u] != comp[v] {
                entered[comp[u]] = true;
            }
        }
    }
    let mut total = 0i64;
    let mut count = 0;
    for id in 0..cheapest.len() {
        if entered[id] {
            continue;
        }
        match cheapest[id] {
            Some(c) if c >= 0 => {
                total += c;
                count += 1;
            }
            _ => {
                println!("-1");
                return;
            }
        }
    }
    println!("{} {}", total, count);
}
