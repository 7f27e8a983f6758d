// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = v[0] as usize;
    let mut lids = v[2 + 2 * n..].to_vec();
    lids.sort();
    let mut jars: Vec<(u64, u64)> = v[2..2 + 2 * n]
        .chunks(2)
        .map(|c| (c[0], c[0] + c[1]))
        .collect();
    jars.sort_by(|x, y| y.cmp(x));
    let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
    let mut used = Vec::new();
    for &lid in &lids {
        while jars.last().map_or(false, |j| j.0 <= lid) {
            let (_, end) = jars.pop().unwrap();
            *waiting.entry(end).or_insert(0) += 1;
        }
        let found = waiting.range(lid..).next().map(|(&end, _)| end);
        if let Some(end) = found {
            let count = waiting.get_mut(&end).unwrap();
            *count -= 1;
            if *count == 0 {
                waiting.remove(&end);
            }
            used.push(lid);
        }
    }
    println!("{} {}", used.len(), used.last().unwrap_or(&0));
}
