// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: pays the fee whenever the stall changes between two lines, so scattered goods of a stall pay again.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let (n, s, m) = (nums[0] as usize, nums[1] as usize, nums[2] as usize);
    let fees = &nums[3..3 + s];
    let min = i64::MIN / 4;
    let mut out = [vec![0i64; m + 1], vec![0i64; m + 1]];
    let mut inn = [vec![min; m + 1], vec![min; m + 1]];
    let mut current = 0;
    for i in 0..n {
        let p = 3 + s + 3 * i;
        let (stall, cost, joy) = (nums[p] as usize, nums[p + 1] as usize, nums[p + 2]);
        if stall != current {
            current = stall;
            let fee = fees[stall - 1] as usize;
            for u in 0..2 {
                for w in 0..=m {
                    out[u][w] = out[u][w].max(inn[u][w]);
                }
                for w in 0..=m {
                    inn[u][w] = if w >= fee { out[u][w - fee] } else { min };
                }
            }
        }
        let half = (cost + 1) / 2;
        for w in (0..=m).rev() {
            if w >= cost {
                inn[1][w] = inn[1][w].max(inn[1][w - cost] + joy);
            }
            if w >= half {
                inn[1][w] = inn[1][w].max(inn[0][w - half] + joy);
            }
            if w >= cost {
                inn[0][w] = inn[0][w].max(inn[0][w - cost] + joy);
            }
        }
    }
    let ans = out[1][m].max(inn[1][m]).max(inn[0][m]);
    println!("{}", ans);
}
