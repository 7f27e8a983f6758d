// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

fn main() {
    let mut lines = io::stdin().lock().lines().map(|l| l.unwrap());
    let head: Vec<u64> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (r, c, k, t) = (head[0] as i128, head[1] as i128, head[2] as usize, head[3]);
    let feelers: Vec<(i128, i128)> = (0..k)
        .map(|_| {
            let line = lines.next().unwrap();
            let mut p = line.split_whitespace().map(|x| x.parse::<i128>().unwrap());
            (p.next().unwrap(), p.next().unwrap())
        })
        .collect();
    let mut stone: Vec<Vec<bool>> =
        (0..r).map(|_| lines.next().unwrap().trim().chars().map(|ch| ch == '1').collect()).collect();
    for bit in (0..60).rev() {
        if (t >> bit) & 1 == 0 {
            continue;
        }
        let mut next = vec![vec![false; c as usize]; r as usize];
        for &(dr, dc) in &feelers {
            let up = (dr << bit).rem_euclid(r) as usize;
            let left = (dc << bit).rem_euclid(c) as usize;
            for (i, row) in stone.iter().enumerate() {
                let target = &mut next[(i + r as usize - up) % r as usize];
                for (j, &v) in row.iter().enumerate() {
                    target[(j + c as usize - left) % c as usize] ^= v;
                }
            }
        }
        stone = next;
    }
    let total: usize = stone.iter().map(|row| row.iter().filter(|&&v| v).count()).sum();
    println!("{}", total);
    for row in &stone {
        let line: String = row.iter().map(|&v| if v { '1' } else { '0' }).collect();
        println!("{}", line);
    }
}
