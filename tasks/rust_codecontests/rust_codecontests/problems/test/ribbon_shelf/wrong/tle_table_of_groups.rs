// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: fills a table of groups times books, up to 300000 * 300000 steps.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    for s in v[1..].chunks(4) {
        let (r, b, m, k) = (s[0], s[1], s[2], s[3]);
        let mut fill = vec![0u64; r + 1];
        fill[0] = 1;
        for _ in 0..m {
            let mut next = vec![0u64; r + 1];
            let mut window = 0;
            for i in 1..=r {
                window += fill[i - 1];
                if i > k {
                    window += P - fill[i - 1 - k];
                }
                window %= P;
                next[i] = window;
            }
            fill = next;
        }
        let mut gaps = vec![0u64; m + 1];
        gaps[0] = 1;
        for _ in 0..b + 1 {
            for j in (1..=m).rev() {
                gaps[j] = (gaps[j] + gaps[j - 1]) % P;
            }
        }
        println!("{}", fill[r] * gaps[m] % P);
    }
}
