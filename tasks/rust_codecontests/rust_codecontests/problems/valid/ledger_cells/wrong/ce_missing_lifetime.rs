// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a struct holds a &str without a lifetime.
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

struct Entry {
    name: &str,
    terms: Vec<(i64, String)>,
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut entries: Vec<Entry> = Vec::new();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for line in input.split_whitespace().skip(1) {
        let (name, formula) = line.split_once('=').unwrap();
        let mut terms = Vec::new();
        for term in formula.replace('-', "+-").split('+') {
            if !term.is_empty() {
                let sign = if term.starts_with('-') { -1 } else { 1 };
                terms.push((sign, term.trim_start_matches('-').to_string()));
            }
        }
        match ids.get(name) {
            Some(&i) => entries[i].terms = terms,
            None => {
                ids.insert(name, entries.len());
                entries.push(Entry { name, terms });
            }
        }
    }
    let n = entries.len();
    let mut value: Vec<Option<i64>> = vec![None; n];
    for _ in 0..n {
        for i in 0..n {
            let mut sum = Some(0);
            for (sign, word) in &entries[i].terms {
                let v = match ids.get(word.as_str()) {
                    Some(&j) => value[j],
                    None => Some(word.parse().unwrap_or(0)),
                };
                sum = sum.and_then(|s: i64| v.map(|v| (s + sign * v).rem_euclid(P)));
            }
            value[i] = sum;
        }
    }
    for i in 0..n {
        match value[i] {
            Some(v) => println!("{} {}", entries[i].name, v),
            None => println!("{} loop", entries[i].name),
        }
    }
}
