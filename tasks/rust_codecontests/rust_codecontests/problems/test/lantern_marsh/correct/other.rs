// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines().map(|l| l.unwrap());
    let head: Vec<usize> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (r, c, f, k) = (head[0], head[1], head[2] as i32, head[3] as i32);
    let mut cells = vec![b'#'; (r + 2) * (c + 2)];
    let width = c + 2;
    for i in 0..r {
        let line = lines.next().unwrap();
        for (j, ch) in line.trim().bytes().enumerate() {
            cells[(i + 1) * width + j + 1] = ch;
        }
    }
    let start = cells.iter().position(|&x| x == b'S').unwrap();
    let goal = cells.iter().position(|&x| x == b'G').unwrap();
    // most oil with which a cell was ever reached; reaching it later with less is useless
    let mut most = vec![-1i32; cells.len()];
    most[start] = k;
    let mut layer = vec![(start, k)];
    let mut minutes = 0;
    while !layer.is_empty() {
        let arrived = layer.iter().filter(|s| s.0 == goal).map(|s| s.1).max();
        if let Some(oil) = arrived {
            println!("{} {}", minutes, oil);
            return;
        }
        let mut next = Vec::new();
        for &(v, oil) in &layer {
            if cells[v] == b'o' && most[v] < f {
                most[v] = f;
                next.push((v, f));
            }
            for u in [v - 1, v + 1, v - width, v + width] {
                let left = if cells[u] == b'~' { oil - 1 } else { oil };
                if cells[u] != b'#' && left > most[u] {
                    most[u] = left;
                    next.push((u, left));
                }
            }
        }
        layer = next;
        minutes += 1;
    }
    println!("-1");
}
