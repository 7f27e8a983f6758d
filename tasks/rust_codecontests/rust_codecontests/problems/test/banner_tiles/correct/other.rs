// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let v: Vec<u64> = line
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let p = 998244353u64;
    let n = v[0] as usize;
    let mut all = vec![0u64; n + 1];
    let mut no_red = vec![0u64; n + 1];
    all[0] = 1;
    no_red[0] = 1;
    for i in 1..=n {
        no_red[i] = v[1] * all[i - 1] % p;
        if i >= 2 {
            no_red[i] = (no_red[i] + all[i - 2]) % p;
        }
        all[i] = (no_red[i] + no_red[i - 1]) % p;
    }
    println!("{}", all[n]);
}
