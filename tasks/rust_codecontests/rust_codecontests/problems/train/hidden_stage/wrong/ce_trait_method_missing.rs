// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: calls a method that a sorted vector does not have, so it does not compile.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, k, d) = (v[0] as usize, v[1] as usize, v[2]);
    let h = &v[3..3 + n];
    let mut window: Vec<u64> = Vec::new();
    let mut sum = 0;
    let mut most = 0;
    let mut person = 1;
    for j in 0..n {
        if j > k {
            let i = window.lower_bound(&h[j - k - 1]);
            window.remove(i);
        }
        let grief = window.len() - window.lower_bound(&(h[j] + d));
        sum += grief;
        if grief > most {
            most = grief;
            person = j + 1;
        }
        let i = window.lower_bound(&h[j]);
        window.insert(i, h[j]);
    }
    println!("{} {}", sum, person);
}
