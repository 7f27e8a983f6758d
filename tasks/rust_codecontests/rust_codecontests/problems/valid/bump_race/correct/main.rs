// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let p = it.next().unwrap();
    let l = it.next().unwrap();
    let k = it.next().unwrap();
    let n = it.next().unwrap();
    let mut leads: Vec<usize> = (0..=l).collect();
    for _ in 0..k {
        let a = it.next().unwrap();
        leads[a] = it.next().unwrap();
    }
    let mut cell = vec![0usize; p];
    let mut place = vec![0usize; p];
    let mut done = 0;
    let mut turn = 0;
    for d in it.take(n) {
        if done == p - 1 {
            break;
        }
        let target = cell[turn] + d;
        if target == l {
            done += 1;
            place[turn] = done;
            cell[turn] = l;
        } else if target < l {
            let target = leads[target];
            for other in 0..p {
                if other != turn && target != 0 && cell[other] == target {
                    cell[other] = 0;
                }
            }
            cell[turn] = target;
        }
        if d != 6 || place[turn] > 0 {
            for _ in 0..p {
                turn = (turn + 1) % p;
                if place[turn] == 0 {
                    break;
                }
            }
        }
    }
    for i in 0..p {
        println!("{} {}", cell[i], place[i]);
    }
}
