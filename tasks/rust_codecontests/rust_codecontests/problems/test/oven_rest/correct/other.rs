// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::*;

fn main() {
    let mut s = String::new();
    stdin().read_to_string(&mut s).unwrap();
    let v: Vec<i64> = s.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, k) = (v[0] as usize, v[1] as usize);
    // best[i]: greatest total of the first i days when day i + 1 is free of restrictions
    let mut best = vec![0i64; n + 2];
    let mut ans = 0;
    for start in 0..=n {
        if start > 0 {
            best[start] = best[start].max(best[start - 1]);
        }
        let base = best[start];
        ans = ans.max(base);
        let mut with_bread = base;
        let mut with_cake = i64::MIN / 4;
        for day in start..(start + k).min(n) {
            let (b, c) = (v[2 + 2 * day], v[3 + 2 * day]);
            let nb = with_bread.max(with_cake) + b;
            let nc = with_bread + c;
            with_bread = nb;
            with_cake = nc;
            ans = ans.max(nb).max(nc);
            let after = day + 2;
            if after <= n {
                best[after] = best[after].max(nb).max(nc);
            }
        }
    }
    println!("{}", ans);
}
