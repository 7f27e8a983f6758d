// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (p, l, k, n) = (v[0], v[1], v[2], v[3]);
    let magic: HashMap<usize, usize> = (0..k).map(|i| (v[4 + 2 * i], v[5 + 2 * i])).collect();
    let mut throws = v[4 + 2 * k..4 + 2 * k + n].iter();
    let mut queue: VecDeque<usize> = (0..p).collect();
    let mut cell = vec![0; p];
    let mut place = vec![0; p];
    let mut next_place = 1;
    'race: while queue.len() > 1 {
        let me = queue.pop_front().unwrap();
        loop {
            let d = match throws.next() {
                Some(&d) => d,
                None => break 'race,
            };
            let mut to = cell[me] + d;
            if to == l {
                cell[me] = l;
                place[me] = next_place;
                next_place += 1;
                continue 'race;
            }
            if to < l {
                to = *magic.get(&to).unwrap_or(&to);
                if to > 0 {
                    if let Some(&other) = queue.iter().find(|&&o| cell[o] == to) {
                        cell[other] = 0;
                    }
                }
                cell[me] = to;
            }
            if d != 6 {
                break;
            }
        }
        queue.push_back(me);
    }
    for (c, r) in cell.iter().zip(&place) {
        println!("{} {}", c, r);
    }
}
