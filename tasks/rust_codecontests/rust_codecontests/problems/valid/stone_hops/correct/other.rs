// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufWriter, Read, Write};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let (n, g) = (v[0] as usize, v[1] as usize);
    let mut prefix = v[3..3 + n].to_vec();
    for i in 0..n {
        if (i / g) % 2 == 1 {
            prefix[i] = -prefix[i];
        }
        if i >= g {
            prefix[i] += prefix[i - g];
        }
    }
    let stdout = io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    for query in v[3 + n..].chunks(2) {
        let l = query[0] as usize - 1;
        let r = query[1] as usize - 1;
        let last = r - (r - l) % g;
        let mut sum = prefix[last];
        if l >= g {
            sum -= prefix[l - g];
        }
        if (l / g) % 2 == 1 {
            sum = -sum;
        }
        writeln!(out, "{}", sum).unwrap();
    }
}
