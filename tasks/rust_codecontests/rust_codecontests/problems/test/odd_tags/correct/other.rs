// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn lit_up_to(n: i64) -> i64 {
    if n < 0 {
        return 0;
    }
    let mut count = 0i64;
    let mut parity = 0;
    for bit in (0..60).rev() {
        if n >> bit & 1 == 1 {
            if bit > 0 {
                count += 1i64 << (bit - 1);
            } else if parity == 1 {
                count += 1;
            }
            parity ^= 1;
        }
    }
    count + parity
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    for s in v[1..].chunks(3) {
        let before = if s[0] == 0 { -1 } else { (s[0] - 1) >> s[2] };
        println!("{}", lit_up_to(s[1] >> s[2]) - lit_up_to(before));
    }
}
