// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: keeps the first formula of a name instead of the last one.
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::new();
    let mut formulas = Vec::new();
    for entry in input.split_whitespace().skip(1) {
        let (name, formula) = entry.split_once('=').unwrap();
        if ids.contains_key(name) {
            continue;
        }
        ids.insert(name, names.len());
        names.push(name);
        formulas.push(formula.replace('-', "+-"));
    }
    let n = names.len();
    let mut users = vec![vec![]; n];
    let mut missing = vec![0; n];
    for i in 0..n {
        for term in formulas[i].split('+') {
            if let Some(&j) = ids.get(term.trim_start_matches('-')) {
                users[j].push(i);
                missing[i] += 1;
            }
        }
    }
    let mut ready: Vec<usize> = (0..n).filter(|&i| missing[i] == 0).collect();
    let mut value = vec![-1i64; n];
    while let Some(i) = ready.pop() {
        let mut sum = 0;
        for term in formulas[i].split('+').filter(|t| !t.is_empty()) {
            let word = term.trim_start_matches('-');
            let v = match ids.get(word) {
                Some(&j) => value[j],
                None => word.parse::<i64>().unwrap_or(0),
            };
            sum += if term.starts_with('-') { -v } else { v };
        }
        value[i] = sum.rem_euclid(P);
        for &u in &users[i] {
            missing[u] -= 1;
            if missing[u] == 0 {
                ready.push(u);
            }
        }
    }
    for i in 0..n {
        if value[i] < 0 {
            println!("{} loop", names[i]);
        } else {
            println!("{} {}", names[i], value[i]);
        }
    }
}
