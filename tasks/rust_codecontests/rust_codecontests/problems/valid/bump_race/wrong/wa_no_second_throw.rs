// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: forgets that a throw of 6 gives another throw.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (p, l, k, n) = (v[0], v[1], v[2], v[3]);
    let mut leads: Vec<usize> = (0..=l).collect();
    for i in 0..k {
        leads[v[4 + 2 * i]] = v[5 + 2 * i];
    }
    let throws = &v[4 + 2 * k..4 + 2 * k + n];
    let mut cell = vec![0; p];
    let mut place = vec![0; p];
    let mut done = 0;
    let mut turn = 0;
    for &d in throws {
        while place[turn] > 0 {
            turn = (turn + 1) % p;
        }
        let to = cell[turn] + d;
        if to == l {
            done += 1;
            cell[turn] = l;
            place[turn] = done;
            if done + 1 == p {
                break;
            }
        } else if to < l {
            let to = leads[to];
            for i in 0..p {
                if i != turn && cell[i] == to {
                    cell[i] = 0;
                }
            }
            cell[turn] = to;
        }
        turn = (turn + 1) % p;
    }
    for i in 0..p {
        println!("{} {}", cell[i], place[i]);
    }
}
