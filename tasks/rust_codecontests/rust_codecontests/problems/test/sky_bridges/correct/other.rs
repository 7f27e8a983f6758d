// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn mark(start: usize, adj: &[Vec<usize>], seen: &mut [bool]) -> Vec<usize> {
    let mut list = vec![start];
    seen[start] = true;
    let mut at = 0;
    while at < list.len() {
        for &u in &adj[list[at]] {
            if !seen[u] {
                seen[u] = true;
                list.push(u);
            }
        }
        at += 1;
    }
    list
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let nums: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m) = (nums[0] as usize, nums[1] as usize);
    let cost = &nums[2..2 + n];
    let mut adj = vec![vec![]; n];
    let mut rev = vec![vec![]; n];
    for pair in nums[2 + n..2 + n + 2 * m].chunks(2) {
        let (a, b) = (pair[0] as usize - 1, pair[1] as usize - 1);
        adj[a].push(b);
        rev[b].push(a);
    }
    let mut seen = vec![false; n];
    mark(0, &adj, &mut seen);
    let from_capital = seen.clone();
    // start searches from the unreached towns; a start that is reached later is no longer a root
    let mut starts = Vec::new();
    for s in 0..n {
        if !seen[s] {
            mark(s, &adj, &mut seen);
            starts.push(s);
        }
    }
    let mut covered = from_capital;
    let mut answer = (0i64, 0u32);
    for &s in starts.iter().rev() {
        if covered[s] {
            continue;
        }
        mark(s, &adj, &mut covered);
        // all towns from which s can be reached form its component, because nothing else leads into it
        let mut back = vec![s];
        let mut at = 0;
        let mut inside = std::collections::HashSet::new();
        inside.insert(s);
        while at < back.len() {
            for &u in &rev[back[at]] {
                if inside.insert(u) {
                    back.push(u);
                }
            }
            at += 1;
        }
        match back.iter().map(|&v| cost[v]).filter(|&c| c >= 0).min() {
            Some(c) => {
                answer.0 += c;
                answer.1 += 1;
            }
            None => {
                println!("-1");
                return;
            }
        }
    }
    println!("{} {}", answer.0, answer.1);
}
