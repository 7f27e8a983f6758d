// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: lets the compiler guess a type that it cannot know.
use std::io::{self, Read};

/// The sorted sums of all choices from some weights, by the number of weights in them.
fn sums(weights: &[i64]) -> Vec<Vec<i64>> {
    let mut lists = vec![Vec::new(); weights.len() + 1];
    let mut all = vec![0i64; 1 << weights.len()];
    lists[0].push(0);
    for choice in 1usize..1 << weights.len() {
        let first = choice.trailing_zeros() as usize;
        all[choice] = all[choice & (choice - 1)] + weights[first];
        lists[choice.count_ones() as usize].push(all[choice]);
    }
    for list in &mut lists {
        list.sort();
    }
    lists
}

/// How many choices of `chosen` weights have a sum of at most `most`.
fn at_most(left: &[Vec<i64>], right: &[Vec<i64>], chosen: usize, most: i64) -> u64 {
    let mut count = 0;
    for (number, list) in left.iter().enumerate() {
        if number > chosen || chosen - number >= right.len() {
            continue;
        }
        let others = &right[chosen - number];
        let mut end = others.len();
        for &sum in list {
            while end > 0 && sum + others[end - 1] > most {
                end -= 1;
            }
            count += end as u64;
        }
    }
    count
}

fn choices(weights: &[i64], chosen: usize, low: i64, high: i64) -> u64 {
    let (a, b) = weights.split_at(weights.len() / 2);
    let (left, right) = (sums(a), sums(b));
    at_most(&left, &right, chosen, high) - at_most(&left, &right, chosen, low - 1)
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v = text.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
    let (n, chosen, low, high) = (v[0] as usize, v[1] as usize, v[2], v[3]);
    let weights = &v[4..4 + n];
    let mut count = choices(weights, chosen, low, high);
    if n > 1 && chosen > 1 {
        let both = weights[0] + weights[n - 1];
        count -= choices(&weights[1..n - 1], chosen - 2, low - both, high - both);
    }
    println!("{}", count);
}
