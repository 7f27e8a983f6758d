// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: changes one entry of a table while another one is borrowed.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap());
    let n = numbers.next().unwrap() as usize;
    let gate: Vec<u64> = (0..n).map(|_| numbers.next().unwrap()).collect();
    let goods: Vec<u64> = (0..n).map(|_| numbers.next().unwrap()).collect();
    let ways: Vec<Vec<u64>> = (0..n).map(|_| (0..n).map(|_| numbers.next().unwrap()).collect()).collect();
    let mut best = vec![vec![u64::MAX; n]; 1 << n];
    for i in 0..n {
        best[1 << i][i] = gate[i] + goods[i];
    }
    for visited in 1usize..1 << n {
        let k = visited.count_ones() as u64 + 1;
        for last in 0..n {
            let cost = &best[visited][last];
            if *cost == u64::MAX {
                continue;
            }
            for next in 0..n {
                if visited >> next & 1 == 0 && ways[last][next] > 0 {
                    let sum = cost + ways[last][next] + k * goods[next];
                    let entry = &mut best[visited | 1 << next][next];
                    *entry = (*entry).min(sum);
                }
            }
        }
    }
    let answer = best[(1 << n) - 1].iter().min().unwrap();
    if *answer == u64::MAX {
        println!("-1");
    } else {
        println!("{}", answer);
    }
}
