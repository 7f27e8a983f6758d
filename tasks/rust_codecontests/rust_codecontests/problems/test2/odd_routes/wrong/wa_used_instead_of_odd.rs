// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes every trail that is used at all for lit.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<usize> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, q) = (v[0], v[1]);
    let parent = |h: usize| v[h];
    let length = |h: usize| v[h + n - 1];
    let mut used = vec![false; n + 1];
    for j in 0..q {
        let mut a = v[2 * n + 2 * j];
        let mut b = v[2 * n + 2 * j + 1];
        while a != b {
            if a < b {
                std::mem::swap(&mut a, &mut b);
            }
            used[a] = true;
            a = parent(a);
        }
    }
    let mut lit = 0;
    let mut total = 0;
    let mut dark = 0;
    for h in 2..=n {
        if used[h] {
            lit += 1;
            total += length(h);
        } else {
            dark = dark.max(length(h));
        }
    }
    println!("{} {} {}", lit, total, dark);
}
