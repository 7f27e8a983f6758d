// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It matches anew for each number of smallest lids, with a scan of all jars for each lid.
use std::io::{self, Read};

fn closed(jars: &[(i64, i64)], lids: &[i64]) -> usize {
    let mut used = vec![false; jars.len()];
    let mut count = 0;
    for &lid in lids {
        let mut best: Option<usize> = None;
        for (i, j) in jars.iter().enumerate() {
            if !used[i] && j.0 <= lid && lid <= j.1 {
                if best.map_or(true, |b| jars[b].1 > j.1) {
                    best = Some(i);
                }
            }
        }
        if let Some(b) = best {
            used[b] = true;
            count += 1;
        }
    }
    count
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = v[0] as usize;
    let jars: Vec<(i64, i64)> = v[2..2 + 2 * n]
        .chunks(2)
        .map(|c| (c[0], c[0] + c[1]))
        .collect();
    let mut lids = v[2 + 2 * n..].to_vec();
    lids.sort();
    let most = closed(&jars, &lids);
    let mut prefix = 0;
    while closed(&jars, &lids[..prefix]) < most {
        prefix += 1;
    }
    let largest = if prefix == 0 { 0 } else { lids[prefix - 1] };
    println!("{} {}", most, largest);
}
