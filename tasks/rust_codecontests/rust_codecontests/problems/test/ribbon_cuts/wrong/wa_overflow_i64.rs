// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: goes on over all lengths of up to 20 digits without stopping at K, and the value wraps around in i64.
use std::io;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let k: i64 = line.trim().parse().unwrap();
    let mut s = String::new();
    io::stdin().read_line(&mut s).unwrap();
    let digits: Vec<i64> = s
        .trim()
        .chars()
        .map(|c| c.to_digit(10).unwrap() as i64)
        .collect();
    let n = digits.len();
    let m = 1_000_000_007i64;
    let mut dp = vec![0i64; n + 1];
    dp[0] = 1;
    for i in 0..n {
        if i > 0 && dp[i] == 0 {
            continue;
        }
        let mut value = 0i64;
        for j in i..n.min(i + 20) {
            value = value * 10 + digits[j];
            if j > i && digits[i] == 0 {
                break;
            }
            if value > k {
                continue;
            }
            if i == 0 || digits[i - 1] % 2 != digits[j] % 2 {
                dp[j + 1] = (dp[j + 1] + dp[i]) % m;
            }
        }
    }
    println!("{}", dp[n]);
}
