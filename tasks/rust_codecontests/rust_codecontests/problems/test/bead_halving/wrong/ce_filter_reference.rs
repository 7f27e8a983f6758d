// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: compares a reference with a number inside filter, so it does not compile.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m) = (v[0], v[1]);
    let wall = &v[2..2 + m];
    let bowls = &v[2 + m..2 + m + n];
    let mut g = vec![0usize; 5001];
    for s in 1..=5000 {
        let mut seen = [false; 64];
        seen[0] = s % 2 == 0;
        for &t in wall {
            if t <= s {
                seen[g[s - t]] = true;
            }
        }
        g[s] = seen.iter().position(|&x| !x).unwrap();
    }
    let total = bowls.iter().fold(0, |acc, &s| acc ^ g[s]);
    let mut answer = 0;
    for &s in bowls {
        let rest = total ^ g[s];
        answer += wall.iter().filter(|t| t <= s && g[s - t] == rest).count();
        if s > 0 && s % 2 == 0 && rest == 0 {
            answer += 1;
        }
    }
    println!("{}", answer);
}
