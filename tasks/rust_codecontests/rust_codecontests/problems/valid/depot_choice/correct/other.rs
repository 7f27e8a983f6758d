// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

struct Village {
    cost: u64,
    roads: Vec<(usize, u64)>,
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|x| x.parse().unwrap()).collect()
}

fn main() {
    let stdin = io::stdin();
    let lines: Vec<String> = stdin.lock().lines().map(|l| l.unwrap()).collect();
    let n = numbers(&lines[0])[0] as usize;
    let farmers = numbers(&lines[1]);
    let costs = numbers(&lines[2]);
    let mut villages: Vec<Village> =
        (0..n).map(|i| Village { cost: costs[i], roads: vec![] }).collect();
    for line in lines[3..].iter().filter(|l| !l.trim().is_empty()) {
        let row = numbers(line);
        let (a, b) = (row[0] as usize - 1, row[1] as usize - 1);
        villages[a].roads.push((b, row[2]));
        villages[b].roads.push((a, row[2]));
    }
    // (parent, length of the road to it) in breadth-first order
    let mut order = vec![(0usize, usize::MAX, 0u64)];
    let mut at = 0;
    while at < order.len() {
        let (v, from, _) = order[at];
        at += 1;
        for &(u, l) in &villages[v].roads {
            if u != from {
                order.push((u, v, l));
            }
        }
    }
    let mut count: Vec<u64> = farmers.clone();
    let mut down = vec![0u64; n];
    for &(v, from, l) in order.iter().skip(1).rev() {
        count[from] += count[v];
        down[from] += down[v] + count[v] * l;
    }
    let all = count[0];
    let mut up = vec![0u64; n];
    for &(v, from, l) in order.iter().skip(1) {
        let rest = down[from] - (down[v] + count[v] * l);
        up[v] = up[from] + rest + (all - count[v]) * l;
    }
    let best = (0..n)
        .filter(|&v| n <= 2 || villages[v].roads.len() > 1)
        .min_by_key(|&v| (down[v] + up[v] + villages[v].cost, v))
        .unwrap();
    println!("{} {}", best + 1, down[best] + up[best] + villages[best].cost);
}
