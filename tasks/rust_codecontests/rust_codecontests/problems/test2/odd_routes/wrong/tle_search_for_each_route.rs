// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: searches the whole range anew for every hiker.
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<usize> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, q) = (v[0], v[1]);
    let mut trails: Vec<Vec<usize>> = vec![vec![]; n + 1];
    for h in 2..=n {
        trails[h].push(v[h]);
        trails[v[h]].push(h);
    }
    let mut lamp = vec![false; n + 1];
    for j in 0..q {
        let (a, b) = (v[2 * n + 2 * j], v[2 * n + 2 * j + 1]);
        let mut came: HashMap<usize, usize> = HashMap::new();
        came.insert(a, a);
        let mut queue = VecDeque::from(vec![a]);
        while let Some(h) = queue.pop_front() {
            for &other in &trails[h] {
                if !came.contains_key(&other) {
                    came.insert(other, h);
                    queue.push_back(other);
                }
            }
        }
        let mut at = b;
        while at != a {
            let before = came[&at];
            let lower = at.max(before);
            lamp[lower] = !lamp[lower];
            at = before;
        }
    }
    let lit: Vec<usize> = (2..=n).filter(|&h| lamp[h]).map(|h| v[h + n - 1]).collect();
    let dark = (2..=n).filter(|&h| !lamp[h]).map(|h| v[h + n - 1]).max().unwrap_or(0);
    println!("{} {} {}", lit.len(), lit.iter().sum::<usize>(), dark);
}
