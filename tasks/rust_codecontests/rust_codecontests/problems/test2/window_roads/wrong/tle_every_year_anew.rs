// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: searches the villages of every year anew.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<usize> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m, w) = (v[0], v[1], v[2]);
    let mut counts = Vec::new();
    for t in 0..=m - w {
        let mut roads: Vec<Vec<usize>> = vec![vec![]; n + 1];
        for j in t..t + w {
            let (a, b) = (v[3 + 2 * j], v[4 + 2 * j]);
            roads[a].push(b);
            roads[b].push(a);
        }
        let mut seen = vec![false; n + 1];
        let mut districts = 0;
        for start in 1..=n {
            if seen[start] {
                continue;
            }
            districts += 1;
            seen[start] = true;
            let mut stack = vec![start];
            while let Some(a) = stack.pop() {
                for &b in &roads[a] {
                    if !seen[b] {
                        seen[b] = true;
                        stack.push(b);
                    }
                }
            }
        }
        counts.push(districts);
    }
    let least = counts.iter().min().unwrap();
    let year = counts.iter().position(|c| c == least).unwrap() + 1;
    println!("{} {} {}", counts.iter().sum::<usize>(), least, year);
}
