// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let g = it.next().unwrap() as usize;
    let q = it.next().unwrap() as usize;
    let a: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut s = vec![0i64; n + g];
    for i in (0..n).rev() {
        s[i] = a[i] - s[i + g];
    }
    let mut out = String::new();
    for _ in 0..q {
        let l = it.next().unwrap() as usize - 1;
        let r = it.next().unwrap() as usize - 1;
        let count = (r - l) / g + 1;
        let tail = s[l + count * g];
        let value = if count % 2 == 0 {
            s[l] - tail
        } else {
            s[l] + tail
        };
        out.push_str(&value.to_string());
        out.push('\n');
    }
    print!("{}", out);
}
