// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::HashMap;
use std::io::{self, BufRead};

const P: i64 = 998_244_353;

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Known(i64),
    Loop,
}

fn terms(formula: &str) -> Vec<(bool, String)> {
    let mut out: Vec<(bool, String)> = vec![(false, String::new())];
    for c in formula.chars() {
        if c == '+' || c == '-' {
            out.push((c == '-', String::new()));
        } else {
            out.last_mut().unwrap().1.push(c);
        }
    }
    out.retain(|t| !t.1.is_empty());
    out
}

fn main() {
    let lines: Vec<String> = io::stdin().lock().lines().map(|l| l.unwrap()).collect();
    let n: usize = lines[0].trim().parse().unwrap();
    let mut order: Vec<&str> = Vec::new();
    let mut latest: HashMap<&str, &str> = HashMap::new();
    for line in &lines[1..=n] {
        let mut halves = line.trim().split('=');
        let name = halves.next().unwrap();
        if latest.insert(name, halves.next().unwrap()).is_none() {
            order.push(name);
        }
    }
    let id: HashMap<&str, usize> = order.iter().enumerate().map(|(i, &s)| (s, i)).collect();
    let parsed: Vec<Vec<(bool, String)>> = order.iter().map(|s| terms(latest[s])).collect();
    let mut state = vec![State::New; order.len()];
    for root in 0..order.len() {
        if state[root] != State::New {
            continue;
        }
        let mut stack = vec![(root, 0usize, 0i64, false)];
        state[root] = State::Open;
        while let Some((cell, at, sum, bad)) = stack.pop() {
            if at == parsed[cell].len() {
                state[cell] = if bad { State::Loop } else { State::Known(sum.rem_euclid(P)) };
                continue;
            }
            let (minus, word) = &parsed[cell][at];
            let mut value = State::Known(0);
            if word.as_bytes()[0].is_ascii_digit() {
                value = State::Known(word.parse().unwrap());
            } else if let Some(&other) = id.get(word.as_str()) {
                value = state[other];
                if value == State::New {
                    state[other] = State::Open;
                    stack.push((cell, at, sum, bad));
                    stack.push((other, 0, 0, false));
                    continue;
                }
            }
            match value {
                State::Known(v) => stack.push((cell, at + 1, (sum + if *minus { -v } else { v }) % P, bad)),
                _ => stack.push((cell, at + 1, sum, true)),
            }
        }
    }
    let mut out = String::new();
    for (name, s) in order.iter().zip(&state) {
        match s {
            State::Known(v) => out.push_str(&format!("{} {}\n", name, v)),
            _ => out.push_str(&format!("{} loop\n", name)),
        }
    }
    print!("{}", out);
}
