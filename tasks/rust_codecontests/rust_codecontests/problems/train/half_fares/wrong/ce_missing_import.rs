// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: Reverse is used but not imported.
use std::collections::BinaryHeap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let t = it.next().unwrap() as usize;
    let mut adj = vec![Vec::new(); n];
    for _ in 0..m {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        let w = it.next().unwrap();
        adj[a].push((b, w));
        adj[b].push((a, w));
    }
    let mut dist = vec![vec![[u64::MAX; 2]; t + 1]; n];
    let mut heap = BinaryHeap::new();
    dist[0][0][0] = 0;
    heap.push(Reverse((0u64, 0usize, 0usize, 0usize)));
    while let Some(Reverse((d, v, used, last))) = heap.pop() {
        if d > dist[v][used][last] {
            continue;
        }
        for &(u, w) in &adj[v] {
            if d + w < dist[u][used][0] {
                dist[u][used][0] = d + w;
                heap.push(Reverse((d + w, u, used, 0)));
            }
            if last == 0 && used < t {
                let nd = d + w / 2;
                if nd < dist[u][used + 1][1] {
                    dist[u][used + 1][1] = nd;
                    heap.push(Reverse((nd, u, used + 1, 1)));
                }
            }
        }
    }
    let mut best = (u64::MAX, 0);
    for used in 0..=t {
        let d = dist[n - 1][used][0].min(dist[n - 1][used][1]);
        if d < best.0 {
            best = (d, used);
        }
    }
    if best.0 == u64::MAX {
        println!("-1");
    } else {
        println!("{} {}", best.0, best.1);
    }
}
