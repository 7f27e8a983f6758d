// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it searches the way anew for each pair of a depot and a village, which is cubic.
use std::io::{self, Read};

fn path(adj: &Vec<Vec<(usize, i64)>>, from: usize, to: usize) -> i64 {
    let mut stack = vec![(from, usize::MAX, 0)];
    while let Some((v, parent, d)) = stack.pop() {
        if v == to {
            return d;
        }
        for &(u, l) in &adj[v] {
            if u != parent {
                stack.push((u, v, d + l));
            }
        }
    }
    0
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
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
    let mut best = i64::MAX;
    let mut village = 0;
    for v in 0..n {
        if n > 2 && adj[v].len() == 1 {
            continue;
        }
        let mut sum = c[v];
        for i in 0..n {
            sum += p[i] * path(&adj, v, i);
        }
        if sum < best {
            best = sum;
            village = v + 1;
        }
    }
    println!("{} {}", village, best);
}
