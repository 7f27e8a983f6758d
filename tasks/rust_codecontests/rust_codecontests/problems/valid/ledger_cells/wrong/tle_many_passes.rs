// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: goes over all entries again and again until nothing changes, which is quadratic for a long chain.
use std::collections::HashMap;
use std::io::{self, Read};

const P: i64 = 998244353;

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut order: Vec<String> = Vec::new();
    let mut formulas: HashMap<String, String> = HashMap::new();
    for entry in input.split_whitespace().skip(1) {
        let parts: Vec<&str> = entry.split('=').collect();
        if !formulas.contains_key(parts[0]) {
            order.push(parts[0].to_string());
        }
        let spaced = parts[1].replace('+', " + ").replace('-', " - ");
        formulas.insert(parts[0].to_string(), spaced);
    }
    let mut values: HashMap<String, i64> = HashMap::new();
    loop {
        let mut changed = false;
        for name in &order {
            if values.contains_key(name) {
                continue;
            }
            let mut sum = 0;
            let mut sign = 1;
            let mut known = true;
            let words: Vec<String> = formulas[name].split_whitespace().map(|w| w.to_string()).collect();
            for word in words {
                if word == "+" {
                    sign = 1;
                } else if word == "-" {
                    sign = -1;
                } else if let Ok(v) = word.parse::<i64>() {
                    sum += sign * v;
                } else if let Some(v) = values.get(&word) {
                    sum += sign * v;
                } else if formulas.contains_key(&word) {
                    known = false;
                }
            }
            if known {
                values.insert(name.clone(), sum.rem_euclid(P));
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for name in &order {
        match values.get(name) {
            Some(v) => println!("{} {}", name, v),
            None => println!("{} loop", name),
        }
    }
}
