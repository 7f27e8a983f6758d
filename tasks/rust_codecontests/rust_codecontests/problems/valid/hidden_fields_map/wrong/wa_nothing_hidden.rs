// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: without any hidden field it prints a letter and an area of 0 as well.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<&[u8]> = (0..r).map(|_| it.next().unwrap().as_bytes()).collect();
    let mut seen = vec![vec![false; c]; r];
    let mut area = [0usize; 26];
    let mut fields = 0;
    for i in 0..r {
        for j in 0..c {
            if seen[i][j] {
                continue;
            }
            let letter = grid[i][j];
            let mut hidden = true;
            let mut size = 0;
            let mut stack = vec![(i, j)];
            seen[i][j] = true;
            while let Some((x, y)) = stack.pop() {
                size += 1;
                if x == 0 || y == 0 || x == r - 1 || y == c - 1 {
                    hidden = false;
                }
                let mut next = Vec::with_capacity(4);
                if x > 0 {
                    next.push((x - 1, y));
                }
                if y > 0 {
                    next.push((x, y - 1));
                }
                if x + 1 < r {
                    next.push((x + 1, y));
                }
                if y + 1 < c {
                    next.push((x, y + 1));
                }
                for (a, b) in next {
                    if !seen[a][b] && grid[a][b] == letter {
                        seen[a][b] = true;
                        stack.push((a, b));
                    }
                }
            }
            if hidden {
                fields += 1;
                area[(letter - b'a') as usize] += size;
            }
        }
    }
    let mut best = 0;
    for l in 1..26 {
        if area[l] > area[best] {
            best = l;
        }
    }
    println!("{} {} {}", fields, (b'a' + best as u8) as char, area[best]);
}
