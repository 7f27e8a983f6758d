// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds Option values without taking the number out.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = nums[0] as usize;
    let d = nums[1];
    let a = &nums[2..];
    let mut full: Vec<Vec<Option<i64>>> = vec![vec![None; n + 1]; n + 1];
    for i in 0..=n {
        full[i][i] = Some(0);
    }
    let mut gain = vec![0i64; n + 1];
    for r in 1..=n {
        for l in (0..r).rev() {
            for p in l + 1..r {
                if (a[l] - a[p]).abs() <= d && full[l + 1][p].is_some() && full[p + 1][r].is_some()
                {
                    let x = full[l + 1][p] + full[p + 1][r] + a[l] * a[p];
                    full[l][r] = full[l][r].max(Some(x));
                }
            }
        }
        gain[r] = gain[r - 1];
        for l in 0..r {
            if let Some(x) = full[l][r] {
                gain[r] = gain[r].max(gain[l] + x);
            }
        }
    }
    println!("{}", gain[n]);
}
