// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: the table has one place too few, the full set is out of range.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as u32;
    let t: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut e = vec![vec![0i64; n]; n];
    for i in 0..n {
        for j in 0..n {
            e[i][j] = it.next().unwrap();
        }
    }
    let inf = i64::MAX / 2;
    let mut dp = vec![inf; (1 << n) - 1];
    dp[0] = 0;
    let mut ans = inf;
    for mask in 0..1usize << n {
        if dp[mask] == inf {
            continue;
        }
        if mask.count_ones() == m {
            ans = ans.min(dp[mask]);
            continue;
        }
        for i in 0..n {
            if mask >> i & 1 == 1 {
                continue;
            }
            let mut time = t[i];
            for j in 0..n {
                if mask >> j & 1 == 1 {
                    time += e[j][i];
                }
            }
            let next = mask | 1 << i;
            dp[next] = dp[next].min(dp[mask] + time.max(1));
        }
    }
    println!("{}", ans);
}
