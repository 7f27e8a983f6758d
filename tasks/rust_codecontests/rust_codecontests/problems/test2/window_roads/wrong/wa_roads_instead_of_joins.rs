// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts every road that does not lead back to its village as one district less.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<usize> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m, w) = (v[0], v[1], v[2]);
    let useful: Vec<usize> = (0..m).map(|j| if v[3 + 2 * j] != v[4 + 2 * j] { 1 } else { 0 }).collect();
    let mut now: usize = useful[..w].iter().sum();
    let mut sum = 0;
    let mut least = usize::MAX;
    let mut year = 0;
    for t in 0..=m - w {
        let districts = n.saturating_sub(now).max(1);
        sum += districts;
        if districts < least {
            least = districts;
            year = t + 1;
        }
        if t + w < m {
            now = now + useful[t + w] - useful[t];
        }
    }
    println!("{} {} {}", sum, least, year);
}
