// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: indexes the map of names with a name that never gets a formula, which panics.
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut formulas: HashMap<&str, Vec<String>> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for entry in input.split_whitespace().skip(1) {
        let (name, formula) = entry.split_once('=').unwrap();
        let terms = formula.replace('-', "+-").split('+').filter(|t| !t.is_empty()).map(String::from).collect();
        if formulas.insert(name, terms).is_none() {
            order.push(name);
        }
    }
    let ids: HashMap<&str, usize> = order.iter().enumerate().map(|(i, &s)| (s, i)).collect();
    let n = order.len();
    let mut users = vec![vec![]; n];
    let mut missing = vec![0; n];
    for i in 0..n {
        for term in &formulas[order[i]] {
            let word = term.trim_start_matches('-');
            if word.parse::<i64>().is_err() {
                users[ids[word]].push(i);
                missing[i] += 1;
            }
        }
    }
    let mut ready: Vec<usize> = (0..n).filter(|&i| missing[i] == 0).collect();
    let mut value = vec![None; n];
    while let Some(i) = ready.pop() {
        let mut sum = 0;
        for term in &formulas[order[i]] {
            let word = term.trim_start_matches('-');
            let v = word.parse::<i64>().unwrap_or_else(|_| value[ids[word]].unwrap());
            sum += if term.starts_with('-') { -v } else { v };
        }
        value[i] = Some(sum.rem_euclid(P));
        for &u in &users[i] {
            missing[u] -= 1;
            if missing[u] == 0 {
                ready.push(u);
            }
        }
    }
    for i in 0..n {
        match value[i] {
            Some(v) => println!("{} {}", order[i], v),
            None => println!("{} loop", order[i]),
        }
    }
}
