// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it assumes that there is only one circle and stops after the first.
use std::io::{self, Read};

const INF: i64 = 1 << 60;

fn join(table: &[i64], child: &[i64]) -> Vec<i64> {
    let k = table.len();
    (0..k)
        .map(|d| {
            let mut best = child[0];
            if d + 1 < k {
                best = best.min(child[d + 1]);
            }
            (table[d] + best).min(INF)
        })
        .collect()
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let f: Vec<usize> = (0..n).map(|_| it.next().unwrap() as usize - 1).collect();
    let mut dp = vec![vec![0i64; k]; n];
    for i in 0..n {
        dp[i][0] = it.next().unwrap();
    }
    let mut deg = vec![0; n];
    for &x in &f {
        deg[x] += 1;
    }
    let mut on_cycle = vec![true; n];
    let mut stack: Vec<usize> = (0..n).filter(|&i| deg[i] == 0).collect();
    while let Some(v) = stack.pop() {
        on_cycle[v] = false;
        let p = f[v];
        dp[p] = join(&dp[p], &dp[v]);
        deg[p] -= 1;
        if deg[p] == 0 {
            stack.push(p);
        }
    }
    let mut total = 0i64;
    let mut done = vec![false; n];
    for s in 0..n {
        if !on_cycle[s] || done[s] {
            continue;
        }
        let mut cycle = Vec::new();
        let mut v = s;
        while !done[v] {
            done[v] = true;
            cycle.push(v);
            v = f[v];
        }
        let len = cycle.len();
        let mut best = INF;
        // the first tower's distance to its next guard is fixed, then the towers behind it follow backwards
        for first in 0..k {
            let mut cur = vec![INF; k];
            cur[first] = dp[s][first];
            for i in (1..len).rev() {
                let w = cycle[i];
                let mut next = vec![INF; k];
                for d in 0..k {
                    if cur[d] >= INF {
                        continue;
                    }
                    next[0] = next[0].min(cur[d] + dp[w][0]);
                    if d + 1 < k {
                        next[d + 1] = next[d + 1].min(cur[d] + dp[w][d + 1]);
                    }
                }
                cur = next;
            }
            if first == 0 {
                best = best.min(*cur.iter().min().unwrap());
            } else {
                best = best.min(cur[first - 1]);
            }
        }
        total += best;
        break;
    }
    println!("{}", total);
}
