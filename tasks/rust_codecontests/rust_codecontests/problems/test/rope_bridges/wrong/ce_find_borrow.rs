// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: find takes a mutable reference but is given an immutable one.
use std::io::{self, Read};

fn find(p: &mut Vec<usize>, v: usize) -> usize {
    let mut v = v;
    while p[v] != v {
        p[v] = p[p[v]];
        v = p[v];
    }
    v
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut p: Vec<usize> = (0..=n).collect();
    let mut far = vec![0u64; n + 1];
    for _ in 0..q {
        let kind = it.next().unwrap();
        let u: usize = it.next().unwrap().parse().unwrap();
        if kind == "F" {
            println!("{}", far[u]);
            continue;
        }
        let v: usize = it.next().unwrap().parse().unwrap();
        let w: u64 = it.next().unwrap().parse().unwrap();
        let (a, b) = (find(&p, u), find(&p, v));
        if a != b {
            p[a] = b;
            let (x, y) = (far[u], far[v]);
            far[u] = x.max(y + w);
            far[v] = y.max(x + w);
        }
    }
}
