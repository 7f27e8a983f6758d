// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

enum Term {
    Number(i64),
    Name(usize),
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut formulas: Vec<&str> = Vec::new();
    for entry in input.split_ascii_whitespace().skip(1) {
        let (name, formula) = entry.split_once('=').unwrap();
        if let Some(&id) = ids.get(name) {
            formulas[id] = formula;
        } else {
            ids.insert(name, names.len());
            names.push(name);
            formulas.push(formula);
        }
    }
    let n = names.len();
    let mut terms: Vec<Vec<(i64, Term)>> = Vec::with_capacity(n);
    let mut users = vec![Vec::new(); n];
    let mut missing = vec![0usize; n];
    for (i, formula) in formulas.iter().enumerate() {
        let mut list = Vec::new();
        let mut rest = *formula;
        while !rest.is_empty() {
            let mut sign = 1;
            if let Some(r) = rest.strip_prefix('-') {
                sign = -1;
                rest = r;
            } else if let Some(r) = rest.strip_prefix('+') {
                rest = r;
            }
            let end = rest.find(|c| c == '+' || c == '-').unwrap_or(rest.len());
            let word = &rest[..end];
            rest = &rest[end..];
            if let Ok(v) = word.parse::<i64>() {
                list.push((sign, Term::Number(v)));
            } else if let Some(&id) = ids.get(word) {
                list.push((sign, Term::Name(id)));
                users[id].push(i);
                missing[i] += 1;
            }
        }
        terms.push(list);
    }
    let mut value: Vec<Option<i64>> = vec![None; n];
    let mut ready: Vec<usize> = (0..n).filter(|&i| missing[i] == 0).collect();
    while let Some(i) = ready.pop() {
        let mut sum = 0;
        for (sign, term) in &terms[i] {
            let v = match term {
                Term::Number(v) => *v,
                Term::Name(id) => value[*id].unwrap(),
            };
            sum = (sum + sign * v) % P;
        }
        value[i] = Some(sum.rem_euclid(P));
        for &u in &users[i] {
            missing[u] -= 1;
            if missing[u] == 0 {
                ready.push(u);
            }
        }
    }
    let mut out = String::new();
    for i in 0..n {
        match value[i] {
            Some(v) => out += &format!("{} {}\n", names[i], v),
            None => out += &format!("{} loop\n", names[i]),
        }
    }
    print!("{}", out);
}
