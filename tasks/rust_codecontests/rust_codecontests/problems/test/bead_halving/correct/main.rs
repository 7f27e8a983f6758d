// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let n = it.next().unwrap();
    let m = it.next().unwrap();
    let wall: Vec<usize> = (0..m).map(|_| it.next().unwrap()).collect();
    let bowls: Vec<usize> = (0..n).map(|_| it.next().unwrap()).collect();
    let top = *bowls.iter().max().unwrap();
    let mut g = vec![0usize; top + 1];
    for s in 1..=top {
        let mut seen = [false; 64];
        if s % 2 == 0 {
            seen[0] = true;
        }
        for &t in &wall {
            if t <= s {
                seen[g[s - t]] = true;
            }
        }
        g[s] = seen.iter().position(|&x| !x).unwrap();
    }
    let total = bowls.iter().fold(0, |acc, &s| acc ^ g[s]);
    let mut answer = 0u64;
    for &s in &bowls {
        let rest = total ^ g[s];
        for &t in &wall {
            if t <= s && g[s - t] == rest {
                answer += 1;
            }
        }
        if s > 0 && s % 2 == 0 && rest == 0 {
            answer += 1;
        }
    }
    println!("{}", answer);
}
