// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it prints the cheapest network even if one guild has no pipe in it.
use std::io::{self, Read};

fn find(p: &mut Vec<usize>, v: usize) -> usize {
    if p[v] != v {
        let r = find(p, p[v]);
        p[v] = r;
    }
    p[v]
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let m: usize = it.next().unwrap().parse().unwrap();
    let mut edges: Vec<(i64, usize, usize, char)> = Vec::new();
    for _ in 0..m {
        let a: usize = it.next().unwrap().parse().unwrap();
        let b: usize = it.next().unwrap().parse().unwrap();
        let w: i64 = it.next().unwrap().parse().unwrap();
        let c = it.next().unwrap().chars().next().unwrap();
        edges.push((w, a, b, c));
    }
    edges.sort();
    let red = edges.iter().position(|e| e.3 == 'R');
    let blue = edges.iter().position(|e| e.3 == 'B');
    if red.is_none() || blue.is_none() {
        println!("-1");
        return;
    }
    let mut p: Vec<usize> = (0..=n).collect();
    let mut total = 0i64;
    let mut parts = n;
    for &(w, a, b, _) in &edges {
        let (x, y) = (find(&mut p, a), find(&mut p, b));
        if x != y {
            p[x] = y;
            parts -= 1;
            total += w;
        }
    }
    println!("{}", if parts == 1 { total } else { -1 });
}
