// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: looks at all earlier places for each place and each number of beacons.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = nums[0] as usize;
    let k = nums[1] as usize;
    let p = nums[2];
    let q = nums[3];
    let places: Vec<(i64, i64, i64)> = nums[4..].chunks(3).map(|c| (c[0], c[1], c[2])).collect();
    let inf = i64::MAX / 2;
    let mut dp = vec![vec![[inf; 2]; n]; k + 1];
    dp[1][0] = [places[0].1, places[0].2];
    for used in 2..=k {
        for i in 0..n {
            let mut best_bronze = inf;
            let mut best_silver = inf;
            for j in (0..i).rev() {
                let distance = places[i].0 - places[j].0;
                if distance <= q && dp[used - 1][j][1] < inf {
                    best_bronze = best_bronze.min(dp[used - 1][j][1] + places[i].1);
                    best_silver = best_silver.min(dp[used - 1][j][1] + places[i].2);
                }
                if distance <= p && dp[used - 1][j][0] < inf {
                    best_silver = best_silver.min(dp[used - 1][j][0] + places[i].2);
                }
            }
            dp[used][i] = [best_bronze, best_silver];
        }
    }
    let ans = dp[k][n - 1][0].min(dp[k][n - 1][1]);
    println!("{}", if ans >= inf { -1 } else { ans });
}
