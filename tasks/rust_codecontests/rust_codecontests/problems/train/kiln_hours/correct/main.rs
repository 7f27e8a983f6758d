// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::VecDeque;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let d: Vec<u64> = (0..n).map(|_| it.next().unwrap()).collect();
    let p: Vec<u64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut adj = vec![Vec::new(); n];
    let mut indeg = vec![0; n];
    for _ in 0..m {
        let a = it.next().unwrap() as usize - 1;
        let b = it.next().unwrap() as usize - 1;
        adj[a].push(b);
        indeg[b] += 1;
    }
    let mut ready = vec![0u64; n];
    let mut queue: VecDeque<usize> = (0..n).filter(|&i| indeg[i] == 0).collect();
    let mut fired = 0;
    let mut last = 0u64;
    let mut count = 0;
    while let Some(v) = queue.pop_front() {
        fired += 1;
        let start = (ready[v] + p[v] - 1) / p[v] * p[v];
        let finish = start + d[v];
        if finish > last {
            last = finish;
            count = 1;
        } else if finish == last {
            count += 1;
        }
        for &u in &adj[v] {
            ready[u] = ready[u].max(finish);
            indeg[u] -= 1;
            if indeg[u] == 0 {
                queue.push_back(u);
            }
        }
    }
    if fired < n {
        println!("-1 {}", n - fired);
    } else {
        println!("{} {}", last, count);
    }
}
