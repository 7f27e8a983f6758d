// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it builds a whole tree for every pair of a red and a blue offer.
use std::io::{self, Read};

type Edge = (i64, usize, usize);

fn find(p: &mut Vec<usize>, v: usize) -> usize {
    let mut v = v;
    while p[v] != v {
        p[v] = p[p[v]];
        v = p[v];
    }
    v
}

fn kruskal(n: usize, sorted: &Vec<Edge>, forced: [Edge; 2]) -> Option<i64> {
    let mut p: Vec<usize> = (0..=n).collect();
    let mut total = 0;
    let mut parts = n;
    for &(w, a, b) in forced.iter() {
        total += w;
        let (x, y) = (find(&mut p, a), find(&mut p, b));
        if x != y {
            p[x] = y;
            parts -= 1;
        }
    }
    for &(w, a, b) in sorted.iter() {
        let (x, y) = (find(&mut p, a), find(&mut p, b));
        if x != y {
            p[x] = y;
            parts -= 1;
            total += w;
        }
    }
    if parts > 1 {
        None
    } else {
        Some(total)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let m: usize = it.next().unwrap().parse().unwrap();
    let mut edges = Vec::new();
    let mut red = Vec::new();
    let mut blue = Vec::new();
    for _ in 0..m {
        let a: usize = it.next().unwrap().parse().unwrap();
        let b: usize = it.next().unwrap().parse().unwrap();
        let w: i64 = it.next().unwrap().parse().unwrap();
        edges.push((w, a, b));
        if it.next().unwrap() == "R" {
            red.push((w, a, b));
        } else {
            blue.push((w, a, b));
        }
    }
    edges.sort();
    let mut best: Option<i64> = None;
    for &r in &red {
        for &b in &blue {
            if let Some(total) = kruskal(n, &edges, [r, b]) {
                best = Some(best.map_or(total, |x| x.min(total)));
            }
        }
    }
    println!("{}", best.unwrap_or(-1));
}
