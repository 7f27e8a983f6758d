// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: computes the value of a name anew wherever it is used, which is exponential for names that are used twice each.
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

fn eval<'a>(name: &'a str, formulas: &HashMap<&'a str, Vec<(i64, &'a str)>>, path: &mut Vec<&'a str>) -> Option<i64> {
    if path.contains(&name) {
        return None;
    }
    let terms = match formulas.get(name) {
        Some(t) => t,
        None => return Some(0),
    };
    path.push(name);
    let mut sum = Some(0);
    for &(sign, term) in terms {
        let value = match term.parse::<i64>() {
            Ok(v) => Some(v),
            Err(_) => eval(term, formulas, path),
        };
        if value.is_none() {
            sum = None;
            break;
        }
        sum = sum.map(|s: i64| (s + sign * value.unwrap()).rem_euclid(P));
    }
    path.pop();
    sum
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut order = Vec::new();
    let mut formulas: HashMap<&str, Vec<(i64, &str)>> = HashMap::new();
    for entry in input.split_whitespace().skip(1) {
        let (name, formula) = entry.split_once('=').unwrap();
        let mut terms = Vec::new();
        let mut start = 0;
        let mut sign = 1;
        for (i, c) in formula.char_indices() {
            if c == '+' || c == '-' {
                if i > start {
                    terms.push((sign, &formula[start..i]));
                }
                sign = if c == '-' { -1 } else { 1 };
                start = i + 1;
            }
        }
        terms.push((sign, &formula[start..]));
        if formulas.insert(name, terms).is_none() {
            order.push(name);
        }
    }
    for name in order {
        match eval(name, &formulas, &mut Vec::new()) {
            Some(v) => println!("{} {}", name, v),
            None => println!("{} loop", name),
        }
    }
}
