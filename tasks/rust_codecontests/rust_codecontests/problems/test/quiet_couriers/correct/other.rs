// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

struct Member {
    parent: usize,
    minutes: i64,
    quiet: bool,
    turn: i64,
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).expect("input");
    let nums: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = nums[0] as usize;
    let mut calls = vec![0i64; n + 1];
    let mut members = Vec::with_capacity(n);
    for i in 0..n {
        let parent = nums[1 + i] as usize;
        calls[parent] += 1;
        members.push(Member { parent, minutes: nums[1 + n + i], quiet: nums[1 + 2 * n + i] == 1, turn: calls[parent] });
    }
    // None: not known yet, Some(-1): never hears
    let mut time: Vec<Option<i64>> = vec![None; n];
    for start in 0..n {
        let mut path = Vec::new();
        let mut v = start;
        while time[v].is_none() && members[v].parent != 0 {
            path.push(v);
            v = members[v].parent - 1;
        }
        if members[v].parent == 0 {
            time[v] = Some(0);
        }
        while let Some(u) = path.pop() {
            let boss = members[u].parent - 1;
            let t = time[boss].unwrap();
            time[u] = if t < 0 || members[boss].quiet { Some(-1) } else { Some(t + members[u].turn * members[boss].minutes) };
        }
    }
    let mut count = 0;
    let mut best = (-1i64, 0usize);
    for i in 0..n {
        let t = time[i].unwrap();
        if t >= 0 {
            count += 1;
            if t > best.0 {
                best = (t, i + 1);
            }
        }
    }
    println!("{} {} {}", count, best.0, best.1);
}
