// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: searches all positions below a bowl again for every move, and remembers no nim value.
use std::io::{self, Read};

fn value(s: usize, wall: &[usize]) -> usize {
    let mut seen = Vec::new();
    for &t in wall {
        if t <= s {
            seen.push(value(s - t, wall));
        }
    }
    if s > 0 && s % 2 == 0 {
        let half = value(s / 2, wall);
        seen.push(half ^ half);
    }
    (0..).find(|v| !seen.contains(v)).unwrap()
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m) = (v[0], v[1]);
    let wall = &v[2..2 + m];
    let bowls = &v[2 + m..2 + m + n];
    let total = bowls.iter().fold(0, |sum, &s| sum ^ value(s, wall));
    let mut good = 0;
    for &s in bowls {
        let others = total ^ value(s, wall);
        good += wall.iter().filter(|&&t| t <= s && others ^ value(s - t, wall) == 0).count();
        if s > 0 && s % 2 == 0 && others == 0 {
            good += 1;
        }
    }
    println!("{good}");
}
