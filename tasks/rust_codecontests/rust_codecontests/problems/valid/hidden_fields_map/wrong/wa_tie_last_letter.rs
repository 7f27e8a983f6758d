// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: of letters with equal areas it takes the last one in the alphabet.
use std::collections::BTreeMap;
use std::io::{self, BufRead};

fn root(parent: &mut [usize], mut v: usize) -> usize {
    while parent[v] != v {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    v
}

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines().map(|l| l.unwrap());
    let head: Vec<usize> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (r, c) = (head[0], head[1]);
    let rows: Vec<Vec<char>> = lines.take(r).map(|l| l.trim().chars().collect()).collect();
    // cell r * c stands for the outside: fields of the edge are joined with it
    let outside = r * c;
    let mut parent: Vec<usize> = (0..=outside).collect();
    for i in 0..r {
        for j in 0..c {
            let here = root(&mut parent, i * c + j);
            if i == 0 || j == 0 || i + 1 == r || j + 1 == c {
                let out = root(&mut parent, outside);
                parent[here] = out;
            }
            if i + 1 < r && rows[i][j] == rows[i + 1][j] {
                let (a, b) = (root(&mut parent, here), root(&mut parent, (i + 1) * c + j));
                parent[a] = b;
            }
            if j + 1 < c && rows[i][j] == rows[i][j + 1] {
                let (a, b) = (root(&mut parent, here), root(&mut parent, i * c + j + 1));
                parent[a] = b;
            }
        }
    }
    let out = root(&mut parent, outside);
    let mut fields = 0;
    let mut areas: BTreeMap<char, i32> = BTreeMap::new();
    for v in 0..outside {
        let top = root(&mut parent, v);
        if top == out {
            continue;
        }
        if top == v {
            fields += 1;
        }
        *areas.entry(rows[v / c][v % c]).or_insert(0) += 1;
    }
    match areas.iter().max_by_key(|(&letter, &area)| (area, letter)) {
        Some((letter, area)) => println!("{} {} {}", fields, letter, area),
        None => println!("0"),
    }
}
