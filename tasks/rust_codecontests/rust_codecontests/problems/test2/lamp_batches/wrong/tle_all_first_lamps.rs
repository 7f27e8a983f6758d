// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tries every first lamp of the last batch.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let mut x: Vec<i64> = vec![0];
    for gap in &v[3..] {
        x.push(x[x.len() - 1] + gap);
    }
    const FAR: i64 = i64::MAX / 4;
    let mut a = vec![FAR; n + 1];
    let mut b = vec![FAR; n + 1];
    b[0] = 0;
    for end in 1..=n {
        for start in 1..=end {
            let d = x[end - 1] - x[start - 1];
            a[end] = a[end].min(b[start - 1] + d * d + v[1]);
            b[end] = b[end].min(a[start - 1] + d * d + v[2]);
        }
    }
    println!("{}", a[n].min(b[n]));
}
