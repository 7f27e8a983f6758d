// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut s = String::new();
    io::stdin().read_to_string(&mut s).unwrap();
    let v: Vec<i64> = s.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (up, down) = (v[1], v[2]);
    let levels = &v[3..];
    let mut sorted = levels.to_vec();
    sorted.sort();
    sorted.dedup();
    let mut best = vec![0i64; sorted.len()];
    let mut seen = vec![false; sorted.len()];
    let mut ans = i64::MIN;
    for &x in levels {
        let mut total = x;
        for y in [x - up, x + down] {
            if let Ok(i) = sorted.binary_search(&y) {
                if seen[i] && best[i] > 0 {
                    total = total.max(x + best[i]);
                }
            }
        }
        let me = sorted.binary_search(&x).unwrap();
        if !seen[me] || total > best[me] {
            best[me] = total;
        }
        seen[me] = true;
        ans = ans.max(total);
    }
    println!("{}", ans);
}
